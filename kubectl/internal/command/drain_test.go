package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/preferences"
)

// A selector that is none is refused before a node is cordoned.
func TestDrainByASelectorThatIsNone(t *testing.T) {
	kctl(t, "http://127.0.0.1:1", "", "drain", "n", "--pod-selector=x in (").want(t, 1, "--pod-selector=<pod_selector> must be a valid label selector")
}

// A name that is none keeps all nodes as they are.
func TestCordonOfANodeThatIsNotThere(t *testing.T) {
	for _, verb := range []string{"cordon", "uncordon", "drain"} {
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method != http.MethodGet:
				t.Errorf("%s: %s %s", verb, r.Method, r.URL)
			case strings.HasSuffix(r.URL.Path, "/nodes/there"):
				fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"there"},"spec":{"unschedulable":%t}}`, verb == "uncordon")
			default:
				status(404, metav1.StatusReasonNotFound, path.Base(r.URL.Path)+" not found")(w, r)
			}
		})
		c := kctl(t, host, "", verb, "there", "one", "two")
		if c.want(t, 1, "one not found", "two not found"); c.out.String() != "" {
			t.Errorf("%s: said %s", verb, c.out.String())
		}
	}
}

// drained serves a cordoned node with the pods a and b, which are gone once they were
// evicted. What answers an eviction does so by the pod's name.
func drained(t *testing.T, evict func(w http.ResponseWriter, r *http.Request, pod string)) string {
	pod := func(name string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"default","uid":"` + name +
			`","ownerReferences":[{"kind":"ReplicaSet","name":"r","controller":true}]},"spec":{"nodeName":"n"}}`
	}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch selector := r.URL.Query().Get("fieldSelector"); {
		case strings.HasSuffix(r.URL.Path, "/eviction"):
			evict(w, r, path.Base(path.Dir(r.URL.Path)))
		case strings.HasSuffix(r.URL.Path, "/nodes/n"):
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"unschedulable":true}}`)
		case selector == "spec.nodeName=n":
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`+pod("a")+`,`+pod("b")+`]}`)
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}`)
		}
	})
}

// A pod that is kept does not keep the others: it may be one that waits for them.
func TestDrainEvictsSideBySide(t *testing.T) {
	other := make(chan struct{})
	host := drained(t, func(w http.ResponseWriter, r *http.Request, pod string) {
		if pod == "b" {
			close(other)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the client has left
		select {
		case <-other:
		case <-r.Context().Done():
			t.Error("b is not evicted while a is kept")
		}
	})
	c := kctl(t, host, "", "drain", "n", "--timeout=20s")
	if c.want(t, 0); !strings.Contains(c.out.String(), "pod/a evicted\n") || !strings.Contains(c.out.String(), "pod/b evicted\n") {
		t.Errorf("said %s", c.out.String())
	}
}

// Pods whose namespace ends can't be evicted: they leave with it.
func TestDrainOfANamespaceThatEnds(t *testing.T) {
	refusing := func(causes ...metav1.StatusCause) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, r *http.Request, _ string) {
			status(403, metav1.StatusReasonForbidden, "no", causes...)(w, r)
		}
	}
	host := drained(t, refusing(metav1.StatusCause{Type: corev1.NamespaceTerminatingCause}))
	c := kctl(t, host, "", "drain", "n")
	if c.want(t, 0); !strings.HasSuffix(c.out.String(), "node/n drained\n") {
		t.Errorf("said %s", c.out.String())
	}
	host = drained(t, refusing())
	if c := kctl(t, host, "", "drain", "n"); c.code != 1 {
		t.Errorf("code %d: %s", c.code, c.err.String())
	}
}

// Pods are looked at in kubectl's order: one that should be long gone is not evicted where
// nobody is to wait for it, and one of a daemon set that is gone leaves with --force.
func TestDrainLooksAtPods(t *testing.T) {
	const pod = `{"metadata":{"name":%q,"namespace":"default","uid":%[1]q%s},"spec":{"nodeName":"n"%s}}`
	const emptyDir = `,"volumes":[{"name":"v","emptyDir":{}}]`
	owned := func(by string) string {
		return `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"` + by + `","controller":true}]`
	}
	for _, test := range []struct {
		pods, line string
		code       int
		want       string // on standard output, or else on standard error
	}{
		{fmt.Sprintf(pod, "a", `,"deletionTimestamp":"2020-01-01T00:00:00Z"`, emptyDir), "--skip-wait-for-delete-timeout=1", 0,
			"node/n already cordoned\nnode/n drained\n"},
		{fmt.Sprintf(pod, "a", "", emptyDir), "", 1, "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/a"},
		{fmt.Sprintf(pod, "a", "", "") + "," + fmt.Sprintf(pod, "b", owned("set"), emptyDir), "", 1,
			"due to error: [cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/b, cannot delete Pods that declare no controller (use " +
				"--force to override): default/a], continuing"},
		{fmt.Sprintf(pod, "b", owned("set"), emptyDir), "--ignore-daemonsets", 0, "node/n already cordoned\nnode/n drained\n"},
		{fmt.Sprintf(pod, "b", owned("gone"), ""), "--ignore-daemonsets", 1, `cannot delete daemonsets.apps "gone" not found: default/b`},
		{fmt.Sprintf(pod, "b", owned("gone"), ""), "--force", 0, "node/n already cordoned\nevicting pod default/b\npod/b evicted\nnode/n drained\n"},
		{fmt.Sprintf(pod, "b", owned("gone"), emptyDir), "--force", 1, "local storage"},
	} {
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch selector := r.URL.Query().Get("fieldSelector"); {
			case strings.HasSuffix(r.URL.Path, "/daemonsets/gone"):
				status(404, metav1.StatusReasonNotFound, `daemonsets.apps "gone" not found`)(w, r)
			case strings.HasSuffix(r.URL.Path, "/nodes/n"):
				fmt.Fprint(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"unschedulable":true}}`)
			case selector == "spec.nodeName=n":
				fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`+test.pods+`]}`)
			default:
				fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}`)
			}
		})
		c := kctl(t, host, "", append([]string{"drain", "n"}, strings.Fields(test.line)...)...)
		if c.code != test.code || c.code == 0 && c.out.String() != test.want || !strings.Contains(c.out.String()+c.err.String(), test.want) {
			t.Errorf("drain %s: code %d, said %q, complained %q", test.line, c.code, c.out.String(), c.err.String())
		}
	}
}

// When the time is over, each pod that is kept is named.
func TestDrainOutOfTime(t *testing.T) {
	host := drained(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		status(429, metav1.StatusReasonTooManyRequests, "a budget")(w, r)
	})
	c := kctl(t, host, "", "drain", "n", "--timeout=100ms")
	const each = `error when evicting pods/%q -n "default": global timeout reached: 100ms`
	all := fmt.Sprintf("["+each+", "+each+"]", "a", "b")
	want := `There are pending pods in node "n" when an error occurred: ` + all + "\npod/a\npod/b\n" +
		`error: unable to drain node "n" due to error: ` + all + ", continuing command...\n" +
		"There are pending nodes to be drained:\n n\n" + fmt.Sprintf(each+"\n"+each+"\n", "a", "b")
	if c.code != 1 || !strings.HasSuffix(c.err.String(), want) {
		t.Errorf("code %d: %s", c.code, c.err.String())
	}
}

// All nodes are closed before the first is drained, and one that can't be drained does not
// keep the others.
func TestDrainOfSeveralNodes(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		selector := r.URL.Query().Get("fieldSelector")
		switch name := path.Base(r.URL.Path); {
		case name == "pods":
			asked = append(asked, "pods "+selector)
			pods := ""
			if selector == "spec.nodeName=one" {
				pods = `{"metadata":{"name":"a","namespace":"default","uid":"a"}}` // no controller
			}
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`+pods+`]}`)
		default:
			asked = append(asked, r.Method+" "+name)
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, name)
		}
	})
	c := kctl(t, host, "", "drain", "one", "two")
	if want := "node/one cordoned\nnode/two cordoned\nnode/two drained\n"; c.code != 1 || c.out.String() != want {
		t.Errorf("code %d, said %q", c.code, c.out.String())
	}
	const why = "cannot delete Pods that declare no controller (use --force to override): default/a"
	if want := `error: unable to drain node "one" due to error: ` + why + ", continuing command...\nThere are pending nodes to be drained:\n one\n" + why +
		"\n"; c.err.String() != want {
		t.Errorf("complained %q", c.err.String())
	}
	const want = "GET one, GET two, PATCH one, PATCH two, pods spec.nodeName=one, pods spec.nodeName=two"
	if got := strings.Join(asked, ", "); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// interrupting ends a context when a line has been written: the user has seen it, and has
// pressed Ctrl-C.
type interrupting struct {
	at     string
	cancel context.CancelFunc
}

func (w interrupting) Write(text []byte) (int, error) {
	if string(text) == w.at {
		w.cancel()
	}
	return len(text), nil
}

// What is interrupted has not drained the nodes, even if what it was doing was done.
func TestDrainInterrupted(t *testing.T) {
	t.Setenv(preferences.Environment, preferences.Off)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, at := range []string{"node/n already cordoned\n", "pod/a evicted\n", "node/n drained\n"} {
		host := drained(t, func(http.ResponseWriter, *http.Request, string) {})
		ctx, cancel := context.WithCancel(t.Context())
		var complaint strings.Builder
		c := frame.New(frame.Streams{In: strings.NewReader(""), Out: interrupting{at, cancel}, Err: &complaint}, clock.RealClock{})
		code := run(ctx, c, []string{"--server", host, "--cache-dir", t.TempDir(), "drain", "n", "n"})
		if code != frame.ExitInterrupted || complaint.Len() != 0 {
			t.Errorf("at %q: code %d, complained %q", at, code, complaint.String())
		}
	}
}
