package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
)

const definedAndUsed = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.ex.com}
spec: {group: ex.com, scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true}, {name: v2, served: false}]}
---
{apiVersion: ex.com/v1, kind: Gadget, metadata: {name: g}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}}
`

// definitionsServer stores definitions, or refuses them, and serves what they define some
// requests later. It tells what it has been asked to create.
func definitionsServer(t *testing.T, refuses bool) (host string, created func() string) {
	return keepingServer(t, refuses, "")
}

// keepingServer is a definitionsServer that has served gadgets by another plural, or those of
// the cluster, before, and keeps these.
func keepingServer(t *testing.T, refuses bool, keeps string) (host string, created func() string) {
	const resource = `{"resource":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"scope":%q,"verbs":["get","create"]}`
	const group = `{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[%s]}]}`
	var mu sync.Mutex
	var stored []string
	accepted := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[keeps == ""]
	asked := 0 // for the groups, since the definition was stored
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/api":
			fmt.Fprint(w, discoveryAPI)
		case r.URL.Path == "/apis":
			groups := fmt.Sprintf(group, "apiextensions.k8s.io", fmt.Sprintf(resource, "customresourcedefinitions", "apiextensions.k8s.io", "v1",
				"CustomResourceDefinition", "Cluster"))
			if keeps != "" {
				groups += "," + fmt.Sprintf(group, "ex.com", fmt.Sprintf(resource, keeps, "ex.com", "v1", "Gadget", "Cluster"))
			} else if len(stored) > 0 {
				if asked++; asked > 2 {
					groups += "," + fmt.Sprintf(group, "ex.com", fmt.Sprintf(resource, "gadgets", "ex.com", "v1", "Gadget", "Namespaced"))
				}
			}
			fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`, groups)
		case r.Method == http.MethodPost && refuses && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions"):
			status(422, metav1.StatusReasonInvalid, "it is invalid")(w, r)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+keeps+".ex.com"):
			fmt.Fprintf(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.ex.com"},"spec":{"scope":"Cluster"}}`,
				keeps)
		case r.Method == http.MethodPatch:
			status(422, metav1.StatusReasonInvalid, "it is immutable")(w, r)
		case r.Method == http.MethodPost:
			stored = append(stored, r.URL.Path)
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)
		case strings.HasSuffix(r.URL.Path, "/gadgets.ex.com") && len(stored) > 0:
			fmt.Fprintf(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.ex.com"},"spec":{"scope":"Namespaced"},
				"status":{"conditions":[{"type":"NamesAccepted","status":%q}]}}`, accepted)
		default:
			status(404, metav1.StatusReasonNotFound, "not found")(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(stored, " ")
	}
}

// An object of a kind that the same files define is sent when the server serves the kind.
func TestDefinitionAndObject(t *testing.T) {
	const definition, gadget, pod = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/ex.com/v1/namespaces/default/gadgets",
		"/api/v1/namespaces/default/pods"
	const missing = `resource mapping not found for name: "g" namespace: "" from "STDIN"` // as kubectl says
	backwards := strings.Split(definedAndUsed, "---\n")
	for _, verb := range []string{"create", "apply"} {
		for _, test := range []struct {
			files, args string
			refuses     bool
			code        int
			want        string
		}{
			{definedAndUsed, "", false, 0, definition + " " + gadget + " " + pod},
			{definedAndUsed, "", true, 1, pod},
			{definedAndUsed, "--dry-run=client", false, 1, ""},
			{strings.ReplaceAll(definedAndUsed, "ex.com/v1", "ex.com/v2"), "", false, 1, definition + " " + pod},
			{backwards[1] + "---\n" + backwards[0], "", false, 1, definition},
		} {
			host, created := definitionsServer(t, test.refuses)
			c := kctl(t, host, test.files, append([]string{verb, "-f", "-"}, strings.Fields(test.args)...)...)
			if got := created(); c.code != test.code || got != test.want {
				t.Errorf("%s %s: code %d, made %q, want %q; complained %s", verb, test.args, c.code, got, test.want, c.err.String())
			}
			if said := strings.Contains(c.err.String(), missing); said != (test.code == 1) {
				t.Errorf("%s %s: complained %s", verb, test.args, c.err.String())
			}
		}
	}
}

// Where the server keeps what it has served so far, since it refuses the files' definition
// or does not accept its names, objects are sent as it serves them.
func TestDefinitionThatIsKept(t *testing.T) {
	const definition, pod = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces/default/pods"
	for _, verb := range []string{"create", "apply"} {
		for _, test := range []struct {
			keeps   string
			refuses bool
			code    int
			want    string
		}{
			{"gadgets", true, 1, "/apis/ex.com/v1/gadgets " + pod}, // of another scope
			{"widgets", true, 1, "/apis/ex.com/v1/widgets " + pod},
			{"widgets", false, 0, definition + " /apis/ex.com/v1/widgets " + pod}, // whose kind is taken
		} {
			host, created := keepingServer(t, test.refuses, test.keeps)
			c := kctl(t, host, definedAndUsed, verb, "-f", "-")
			if got := created(); c.code != test.code || got != test.want {
				t.Errorf("%s beside %s: code %d, made %q, want %q; complained %s", verb, test.keeps, c.code, got, test.want, c.err.String())
			}
		}
	}
}

// What the server keeps, it is asked for once for all objects of the kind.
func TestDefinitionThatIsKeptIsReadOnce(t *testing.T) {
	host, created := keepingServer(t, true, "widgets")
	c := kctl(t, host, definedAndUsed+strings.Repeat("---\n{apiVersion: ex.com/v1, kind: Gadget, metadata: {name: g}}\n", 5), "create", "-f", "-", "-v=6")
	if got := strings.Count(created(), "/widgets"); got != 6 {
		t.Errorf("made %s", created())
	}
	if got := strings.Count(c.err.String(), "/customresourcedefinitions/gadgets.ex.com"); got != 1 {
		t.Errorf("read %d times: %s", got, c.err.String())
	}
}

// hurried is a clock by which pauses are over at once; it counts how long they took.
type hurried struct {
	*clocktesting.FakeClock
	paused time.Duration
}

func (h *hurried) NewTimer(pause time.Duration) clock.Timer {
	timer := h.FakeClock.NewTimer(pause)
	if pause < time.Second { // not the timer that tells of slow servers
		h.paused += pause
		h.Step(pause)
	}
	return timer
}

// Of a definition comes nothing if its names are taken. That is waited for once, however many
// objects of the kind there are.
func TestKindThatIsNeverServed(t *testing.T) {
	objects := strings.Split(strings.ReplaceAll(definedAndUsed, "Gadget", "Gizmo"), "---\n") // which the server never serves
	var took []time.Duration
	for _, more := range []string{"", "---\n" + strings.Repeat(objects[1]+"---\n", 3)} {
		host, created := definitionsServer(t, false)
		var out, complaints strings.Builder
		waits := &hurried{FakeClock: clocktesting.NewFakeClock(time.Now())}
		cli := frame.New(frame.Streams{In: strings.NewReader(strings.Join(objects, "---\n") + more), Out: &out, Err: &complaints}, waits)
		t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
		t.Setenv(preferences.Environment, preferences.Off)
		code := run(t.Context(), cli, []string{"--cache-dir", t.TempDir(), "--server", host, "create", "-f", "-"})
		if got := created(); code != 1 || !strings.HasSuffix(got, "/pods") || strings.Contains(got, "gadgets") {
			t.Errorf("code %d, made %q; complained %s", code, got, complaints.String())
		}
		if got, want := strings.Count(complaints.String(), "resource mapping not found"), 1+strings.Count(more, "Gizmo"); got != want {
			t.Errorf("complained of %d objects, want %d: %s", got, want, complaints.String())
		}
		took = append(took, waits.paused)
	}
	if took[0] == 0 || took[0] != took[1] {
		t.Errorf("one object is waited for for %v, four for %v", took[0], took[1])
	}
}
