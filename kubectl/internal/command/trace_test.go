package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A user who may see a pod and not its events is told so: what is shown is not all that is
// known. A server that forbids the stamps is upstream's, which has none.
func TestTraceOfAUserWithFewRights(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/api/v1/namespaces/default/pods/web") {
			fmt.Fprint(w,
				`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}`)
			return
		}
		status(http.StatusForbidden, "Forbidden", `User "bob" cannot get that`)(w, r)
	})
	c := kctl(t, host, "", "trace", "web")
	c.want(t, 0, "Warning: events can't be shown: ")
	if strings.Count(c.err.String(), "Warning: ") != 1 || !strings.HasPrefix(c.out.String(), "pod/web in default, on n, Succeeded") {
		t.Errorf("printed %q and %q", c.out.String(), c.err.String())
	}
}

// What may be missing is said: the stamps of a server that does not answer, and those of one that
// has been started since, unless they are all there.
func TestTraceSaysWhatIsLost(t *testing.T) {
	const servers = `[{"name":"a:1","started":"2026-01-02T00:00:00.25Z"},{"name":"b:1","started":"2026-01-03T00:00:00Z"},{"name":"c:1","started":"2026-01-01T00:00:00Z","silent":true}]`
	const stored = `{"hop":"apiserver.stored","at":"2026-01-02T00:00:00.5Z"}`
	const restarted = "The API server b:1 was started at 2026-01-03T00:00:00Z, after the pod was created: stamps that were kept there before are lost."
	for stamps, lost := range map[string]bool{"": true, stored: true, stored + `,{"hop":"apiserver.bound","at":"2026-01-02T00:00:00.6Z"}`: false} {
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/api/v1/namespaces/default/pods/web"):
				fmt.Fprint(w,
					`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","creationTimestamp":"2026-01-02T00:00:00Z"},"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}`)
			case strings.HasPrefix(r.URL.Path, "/debug/relay/"):
				fmt.Fprintf(w, `{"namespace":"default","name":"web","uid":"u","stamps":[%s],"servers":%s}`, stamps, servers)
			default:
				fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","items":[]}`)
			}
		})
		for _, format := range []string{"", "-ojson", "-ohtml"} {
			c := kctl(t, host, "", strings.Fields("trace web "+format)...)
			c.want(t, 0)
			if out := c.out.String(); strings.Contains(out, restarted) != lost ||
				!strings.Contains(out, "The API server c:1 did not answer: its stamps are not among these.") || strings.Contains(out, "server a:1") {
				t.Errorf("%s with stamps %q: %s", format, stamps, out)
			}
		}
	}
}

// The servers remember a pod that is gone, and how it ended. One that they don't know to be gone was
// never there, or in another cluster.
func TestTraceOfAPodThatIsGone(t *testing.T) {
	stamps := `{"hop":"apiserver.stored","at":"2026-01-02T00:00:00.5Z"},{"hop":"apiserver.deleting","at":"2026-01-02T03:00:00Z"}`
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/debug/relay/"):
			fmt.Fprintf(w, `{"namespace":"default","name":"web","uid":"u","stamps":[%s]}`, stamps)
		case strings.HasSuffix(r.URL.Path, "/events"):
			fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","items":[]}`)
		default:
			status(http.StatusNotFound, metav1.StatusReasonNotFound, `pods "web" not found`)(w, r)
		}
	})
	kctl(t, host, "", "trace", "web").want(t, 1, `pods "web" not found`)
	stamps += `,{"hop":"apiserver.removed","at":"2026-01-02T03:00:00.25Z"}`
	for format, want := range map[string][]string{
		"":        {"pod/web in default, gone: 1 moments in 0.0 ms\n", "\nIts end: 2 moments in 250.0 ms\n"},
		"-ojson":  {`"gone": true`, `"totalMilliseconds": 250`},
		"-ohtml":  {"<bdi>gone</bdi>", "<h2>Its end"},
		"-follow": {"gone: 1 moments"},
	} {
		c := kctl(t, host, "", strings.Fields("trace web "+strings.Replace(format, "-follow", "--follow", 1))...)
		c.want(t, 0)
		for _, text := range want {
			if !strings.Contains(c.out.String(), text) || strings.Contains(c.out.String(), "Now:") {
				t.Errorf("%s: %s\nwant %q", format, c.out.String(), text)
			}
		}
	}
}

// trace and explain-schedule take a pod as get does, and complete it so.
func TestPodsAreCompletedBehindTheirType(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w,
			`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web","namespace":"default"}},{"metadata":{"name":"other","namespace":"default"}}]}`)
	})
	for args, want := range map[string]string{"trace pod w": "web\n:4\n", "explain-schedule po ": "other\nweb\n:4\n", "trace other w": ":4\n",
		"trace pod/other w": ":4\n"} {
		c := kctl(t, host, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if c.out.String() != want {
			t.Errorf("%s: %q, want %q; %s", args, c.out.String(), want, c.err.String())
		}
	}
}
