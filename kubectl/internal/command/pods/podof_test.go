package pods

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
)

func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"resourceVersion":%q}}}`+"\n", kind, name, version)
}

// For a workload without pods, kctl waits for the first one, for
// --pod-running-timeout at most.
func TestAwaitPod(t *testing.T) {
	shop := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "shop", "namespace": "default"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "shop"}}},
	}}
	for name, c := range map[string]struct {
		events, pod, err string
		wait             time.Duration
		generation       int64 // no controller has seen it
		scaled           bool  // and one has seen what it was before
	}{
		"one appears":  {events: event("DELETED", "before", "11") + event("ADDED", "shop-1", "12") + event("ADDED", "shop-2", "13"), pod: "shop-1", wait: time.Hour},
		"none appears": {events: event("DELETED", "before", "11"), err: "timed out waiting for the condition", wait: 50 * time.Millisecond},
		"none will":    {err: "timed out waiting for the condition", wait: 50 * time.Millisecond, generation: 1},
		"of now":       {err: "timed out waiting for the condition", wait: 50 * time.Millisecond, generation: 2, scaled: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if selector := r.URL.Query().Get("labelSelector"); selector != "app=shop" {
					http.Error(w, "asked for "+selector, http.StatusBadRequest)
					return
				}
				fmt.Fprint(w, c.events)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			defer server.Close()
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			var said strings.Builder
			asking := frame.New(frame.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &said}, clock.RealClock{})
			flags := pflag.NewFlagSet("kctl", pflag.ContinueOnError)
			asking.Flags.Add(flags)
			if err := flags.Set("server", server.URL); err != nil {
				t.Fatal(err)
			}
			shop.SetGeneration(c.generation)
			shop.SetManagedFields(nil)
			if c.scaled {
				shop.SetManagedFields([]metav1.ManagedFieldsEntry{{Subresource: "scale"}})
			}
			shop.Object["status"] = map[string]any{"observedGeneration": max(0, c.generation-1)}
			pod, err := awaitPod(t.Context(), asking, shop, podWait{c.wait})
			if unheard := strings.Contains(said.String(), `no controller has taken up deployment "shop"`); unheard != (c.generation == 1) {
				t.Errorf("it said %q", said.String())
			}
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if err != nil || pod.Name != c.pod {
				t.Errorf("%v %v, want %s", pod, err, c.pod)
			}
		})
	}
}

// A pod may be named by its type's full name, too: it is its own then.
func TestPodOfAPod(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default"},
	}}
	pods, err := podsOf(t.Context(), nil, pod)
	if err != nil || len(pods) != 1 || pods[0].Name != "web" {
		t.Errorf("%v, %v", pods, err)
	}
	other := pod.DeepCopy()
	other.SetAPIVersion("example.org/v1")
	if _, err := podsOf(t.Context(), nil, other); err == nil {
		t.Error("a pod of another group has pods")
	}
	for _, arg := range []string{"web", "Pod/web", "PODS/web", "po/web"} {
		if name, err := lookup.PodName(arg); err != nil || name != "web" {
			t.Errorf("%s: %q, %v", arg, name, err)
		}
	}
}
