package command

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A selector that is none is refused before a node is cordoned.
func TestDrainByASelectorThatIsNone(t *testing.T) {
	kctl(t, "http://127.0.0.1:1", "", "drain", "n", "--pod-selector=x in (").want(t, 1, "--pod-selector=<pod_selector> must be a valid label selector")
}

// drained serves a cordoned node with the pods a and b, which are gone once they were
// evicted. What answers an eviction does so by the pod's name.
func drained(t *testing.T, evict func(w http.ResponseWriter, r *http.Request, pod string)) string {
	pod := func(name string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"default","uid":"` + name + `","ownerReferences":[{"kind":"ReplicaSet","name":"r","controller":true}]},"spec":{"nodeName":"n"}}`
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

// When the time is over, each pod that is kept is named.
func TestDrainOutOfTime(t *testing.T) {
	host := drained(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		status(429, metav1.StatusReasonTooManyRequests, "a budget")(w, r)
	})
	c := kctl(t, host, "", "drain", "n", "--timeout=100ms")
	const each = `error when evicting pods/%q -n "default": global timeout reached: 100ms`
	if want := fmt.Sprintf("["+each+", "+each+"]", "a", "b"); c.code != 1 || !strings.Contains(c.err.String(), want) {
		t.Errorf("code %d: %s", c.code, c.err.String())
	}
}
