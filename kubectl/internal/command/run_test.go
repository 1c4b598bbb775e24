package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// madeAndGone is a server that notes what is created and deleted. Its pods have ended.
type madeAndGone struct {
	mu     sync.Mutex
	asked  []string
	refuse string   // the resource of which there is one already
	uids   []string // of what was to be deleted
	gone   bool     // nothing is there to be deleted
}

func (s *madeAndGone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/events") { // nothing happens
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/default/")
	if r.Method != http.MethodGet {
		s.asked = append(s.asked, r.Method+" "+path)
	}
	switch {
	case r.Method == http.MethodPost && path == s.refuse:
		status(409, metav1.StatusReasonAlreadyExists, path+` "x" already exists`)(w, r)
	case r.Method == http.MethodDelete && s.gone:
		status(404, metav1.StatusReasonNotFound, path+" not found")(w, r)
	case r.Method == http.MethodDelete:
		options := metav1.DeleteOptions{}
		if _ = json.NewDecoder(r.Body).Decode(&options); options.Preconditions != nil && options.Preconditions.UID != nil {
			s.uids = append(s.uids, string(*options.Preconditions.UID))
		}
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case r.Method == http.MethodPost:
		object := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&object)
		object["metadata"].(map[string]any)["namespace"] = "default"
		object["metadata"].(map[string]any)["uid"] = "uid of " + path
		_ = json.NewEncoder(w).Encode(object)
	case strings.HasSuffix(path, "/log"):
		fmt.Fprintln(w, "said")
	case path == "pods":
		fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","namespace":"default","uid":"uid of pods","resourceVersion":"1"},
			"spec":{"restartPolicy":"Never","containers":[{"name":"x"}]},"status":{"phase":"Succeeded"}}}`)
	default:
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}
}

// run --expose makes the service of a pod that there is, prints it behind the pod, and takes
// it away with the pod.
func TestRunExpose(t *testing.T) {
	for _, c := range []struct {
		flags, refuse string
		code          int
		out           string
		asked         []string
	}{
		{"--dry-run=client -o name", "", 0, "pod/x\nservice/x\n", nil},
		{"--wait=false", "", 0, "pod/x created\nservice/x created\n", []string{"POST pods", "POST services"}},
		{"--wait=false", "pods", 1, "", []string{"POST pods"}},
		{"", "services", 1, "pod/x created\n", []string{"POST pods", "POST services"}},
		{"--rm -i --restart=Never", "", 0, "said\npod \"x\" deleted from default namespace\nservice \"x\" deleted from default namespace\n",
			[]string{"POST pods", "POST services", "DELETE pods/x", "DELETE services/x"}},
		{"--rm -i --restart=Never", "services", 0, "said\npod \"x\" deleted from default namespace\n", []string{"POST pods", "POST services", "DELETE pods/x"}},
	} {
		server := &madeAndGone{refuse: c.refuse}
		host := serve(t, server.ServeHTTP)
		done := kctl(t, host, "", append(strings.Fields("run x --image=a --expose --port=80"), strings.Fields(c.flags)...)...)
		if done.code != c.code || done.out.String() != c.out || !slices.Equal(server.asked, c.asked) {
			t.Errorf("run --expose %s, %s refused: code %d, asked %q, printed\n%s%s", c.flags, c.refuse, done.code, server.asked, done.out.String(), done.err.String())
		}
		if c.refuse == "services" && !strings.Contains(done.err.String(), `services "x" already exists`) {
			t.Errorf("run --expose %s does not say that there is no service: %s", c.flags, done.err.String())
		}
	}
}

// Keys that are none are refused before there is a pod that nobody can leave.
func TestRunRefusesUnknownKeys(t *testing.T) {
	server := &madeAndGone{}
	done := kctl(t, serve(t, server.ServeHTTP), "", strings.Fields("run x --image=a -i -t --detach-keys=bad")...)
	if done.code != 1 || !strings.Contains(done.err.String(), `unknown key "bad"`) || len(server.asked) > 0 {
		t.Errorf("code %d, asked %q: %s", done.code, server.asked, done.err.String())
	}
}

// The service of run --expose is where its pod is, which --overrides may say.
func TestRunExposesInTheNamespace(t *testing.T) {
	done := kctl(t, "", "", "run", "x", "--image=a", "--expose", "--port=80", "--dry-run=client", `--overrides={"metadata":{"namespace":"other"}}`, "-o",
		"jsonpath={.kind} {.metadata.namespace};")
	if want := "Pod other;Service other;"; done.code != 0 || done.out.String() != want {
		t.Errorf("code %d, %s, want %s", done.code, done.out.String(), want)
	}
}

// run --rm deletes what it made, and nothing else that has its name by then. If others were
// faster, nothing is to be said.
func TestRunRemovesItsOwn(t *testing.T) {
	server := &madeAndGone{}
	line := strings.Fields("run x --image=a --expose --port=80 --rm -i --restart=Never")
	kctl(t, serve(t, server.ServeHTTP), "", line...).want(t, 0)
	if want := []string{"uid of pods", "uid of services"}; !slices.Equal(server.uids, want) {
		t.Errorf("deleted those of %q, want %q", server.uids, want)
	}
	done := kctl(t, serve(t, (&madeAndGone{gone: true}).ServeHTTP), "", line...)
	if done.code != 0 || done.out.String() != "said\n" || strings.Contains(done.err.String(), "error") {
		t.Errorf("gone: code %d, printed %q, said %q", done.code, done.out.String(), done.err.String())
	}
}

// What kctl tells users to type is the name by which they called it.
func TestNameInMessages(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	for _, line := range []string{"get", "describe", "explain", "auth can-i", "get pods pods/x", "get pods/x pods", "cluster-info", "help create cm",
		"help nosuch", "apply -f -"} {
		for _, name := range []string{frame.Kubectl, "kctl"} {
			c := &call{}
			cli := frame.New(frame.Streams{In: strings.NewReader("{apiVersion: v1, kind: Pod, metadata: {name: x}}"), Out: &c.out, Err: &c.err}, clock.RealClock{})
			cli.Name = name
			run(context.Background(), cli, append([]string{"--server", host, "--cache-dir", t.TempDir()}, strings.Fields(line)...))
			said := c.out.String() + c.err.String()
			if before, _, found := strings.Cut(said, "Examples:"); found {
				said = before + said[strings.LastIndex(said, "Use "):]
			}
			for _, other := range []string{"kctl ", "kubectl "} {
				if other != name+" " && strings.Contains(said, other) {
					t.Errorf("called %s, %s says %q:\n%s", name, line, other, said)
				}
			}
		}
	}
}

// A verb that is not there has no help; those that are there have.
func TestHelpTopics(t *testing.T) {
	for line, known := range map[string]bool{"help": true, "help get": true, "help create configmap": true, "help nosuch": false, "help -h": true} {
		c := kctl(t, "", "", strings.Fields(line)...)
		if unknown := strings.Contains(c.err.String(), "Unknown help topic"); c.code != 0 || unknown == known || (c.out.Len() > 0) != known {
			t.Errorf("%s: code %d, printed %q, said %q", line, c.code, c.out.String(), c.err.String())
		}
	}
}

// can-i --list lists everything, or nothing if asked for more.
func TestCanIListAlone(t *testing.T) {
	for _, flags := range []string{"get", "-q", "-A", "--subresource=x"} {
		kctl(t, "http://127.0.0.1:1", "", "auth", "can-i", "--list", flags).want(t, 1, "list option")
	}
}

// can-i warns of verbs that no server knows: no is the answer of all of them. Users can be
// impersonated, and are no objects.
func TestCanIOfVerbs(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
	})
	for question, warning := range map[string]string{
		"gte pods": "Warning: verb 'gte' is not a known verb\n\n", "get /logs": "", "create /logs": "Warning: verb 'create' is not a known verb\n\n", "* *": "",
		"impersonate users": "", "use nothing": "Warning: the server doesn't have a resource type 'nothing'\n\n",
	} {
		c := kctl(t, host, "", append([]string{"auth", "can-i"}, strings.Fields(question)...)...)
		if c.code != 0 || c.out.String() != "yes\n" || c.err.String() != warning {
			t.Errorf("%s: %d, %q, %q, want the warning %q", question, c.code, c.out.String(), c.err.String(), warning)
		}
	}
}

// events --for asks for those of the object's group, too: kinds of two groups may share
// their name.
func TestEventsForComparesGroups(t *testing.T) {
	asked := make(chan string, 1)
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("fieldSelector")
		fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[]}`)
	})
	kctl(t, host, "", "events", "--for", "pod/web").want(t, 0)
	if got, want := <-asked, "involvedObject.kind=Pod,involvedObject.apiVersion=v1,involvedObject.name=web"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	kctl(t, host, "", "events", "--for", "pod/web,type=Normal").want(t, 0)
	if got := <-asked; !strings.HasSuffix(got, `involvedObject.name=web\,type\=Normal`) {
		t.Errorf("a name with signs of a selector asks for %s", got)
	}
	kctl(t, host, "", "events", "--for", "pod/").want(t, 1, "--for must be in resource/name form")
	kctl(t, host, "", "events", "--for", "pod/a/b").want(t, 1, "may not have more than one slash")
}

// events -o prints those of the types asked for, the last at the end; with --watch each by
// itself, and those that come later.
func TestEventsAsObjects(t *testing.T) {
	event := func(name, kind, day string) string {
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","resourceVersion":"5"},"type":%q,"lastTimestamp":"2026-01-%sT00:00:00Z"}`, name, kind, day)
	}
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprintf(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[%s,%s,%s]}`,
				event("c", "Warning", "03"), event("b", "Normal", "02"), event("a", "Warning", "01"))
			return
		}
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}{"type":"MODIFIED","object":%s}{"type":"DELETED","object":%s}`,
			event("d", "Normal", "04"), event("e", "Warning", "05"), event("f", "Warning", "06"))
		fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"enough"}}`)
	})
	for line, want := range map[string]string{
		"events -o name": "event/a\nevent/b\nevent/c\n", "events --types=Warning -o name": "event/a\nevent/c\n",
		"events --types=Warning -o jsonpath={.kind}{.items[*].kind}":  "EventListEvent Event",
		"events --types=warning -w -o name":                           "event/a\nevent/c\nevent/e\n",
		"events --types=Normal -w -o custom-columns=N:.metadata.name": "N\nb\nd\n",
		"events -w -o jsonpath={.metadata.name}{.kind};":              "aEvent;bEvent;cEvent;dEvent;eEvent;",
	} {
		if done := kctl(t, host, "", strings.Fields(line)...); done.out.String() != want || (done.code != 0) != strings.Contains(line, "-w") {
			t.Errorf("%s: code %d, printed %q, want %q\n%s", line, done.code, done.out.String(), want, done.err.String())
		}
	}
}
