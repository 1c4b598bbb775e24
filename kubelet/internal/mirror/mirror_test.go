package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// away is an API server that can't be reached, which takes a while to find out.
type away struct{ asked atomic.Int32 }

func (a *away) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		a.asked.Add(1)
	}
	select {
	case <-time.After(5 * time.Second): // the bubble's clock
	case <-r.Context().Done():
	}
	return nil, errors.New("no route to host")
}

// While the API server is away, a mirror is requested by one call at a time,
// and less and less often.
func TestMirrorsOfAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &away{}
		client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: api})
		if err != nil {
			t.Fatal(err)
		}
		node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "n"}}
		m := New(t.Context(), client, podmanager.New(), func() *core.Node { return node }, &told{}, clock.RealClock{}, zap.NewNop())
		defer m.Wait()
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace:   "default",
			Name:        "static-node-1",
			UID:         "s",
			Annotations: map[string]string{core.ConfigSourceAnnotation: core.FileSource},
		}}
		for range 10 {
			m.EnsureMirror(pod)
		}
		synctest.Wait()
		if asked := api.asked.Load(); asked != 1 {
			t.Errorf("%d calls at once for one mirror", asked)
		}
		for range 10 * 30 { // as housekeeping does for ten minutes
			time.Sleep(2 * time.Second) // the bubble's clock
			m.EnsureMirror(pod)
		}
		if asked := api.asked.Load(); asked < 5 || asked > 60 {
			t.Errorf("%d calls in ten minutes", asked)
		}
	})
}

// A kubelet that ends does not wait for an API server that does not answer.
func TestCallsEndWithTheKubelet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: &away{}})
		if err != nil {
			t.Fatal(err)
		}
		node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "n"}}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		m := New(ctx, client, podmanager.New(), func() *core.Node { return node }, &told{}, clock.RealClock{}, zap.NewNop())
		m.EnsureMirror(&core.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace:   "default",
			Name:        "static-node-1",
			UID:         "s",
			Annotations: map[string]string{core.ConfigSourceAnnotation: core.FileSource},
		}})
		synctest.Wait()
		start := time.Now()
		end()
		if m.Wait(); time.Since(start) > 0 { // the bubble's clock
			t.Errorf("its end takes %v longer", time.Since(start))
		}
	})
}

// told counts the events about pods.
type told struct {
	events int
	last   string
}

func (e *told) Eventf(obj runtime.Object, _, reason, format string, args ...any) {
	e.events++
	e.last = obj.(*core.Pod).Name + ": " + reason + ": " + fmt.Sprintf(format, args...)
}

// taken is an API server in which a pod has the name of the mirror.
type taken struct {
	there *core.Pod // nil if the kubelet may not read it
	asked int
}

func (a *taken) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	answer := func(code int, reason metav1.StatusReason) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		})
	}
	switch {
	case r.Method == http.MethodPost:
		a.asked++
		answer(http.StatusConflict, metav1.StatusReasonAlreadyExists)
	case a.there == nil:
		answer(http.StatusForbidden, metav1.StatusReasonForbidden)
	default:
		_ = json.NewEncoder(w).Encode(a.there)
	}
	return w.Result(), nil
}

// The name of a mirror that another pod has is tried less and less often, and people are told. A mirror of
// ours which the watch has yet to show is none of that.
func TestAnotherPodHasTheNameOfAMirror(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "default",
		Name:        "static-node-1",
		UID:         "s",
		Annotations: map[string]string{core.ConfigSourceAnnotation: core.FileSource, core.ConfigHashAnnotation: "now"},
	}}
	there := func(node, hash string) *core.Pod {
		p := &core.Pod{ObjectMeta: pod.ObjectMeta, Spec: corev1.PodSpec{NodeName: node}}
		p.Annotations = map[string]string{core.ConfigMirrorAnnotation: hash}
		if hash == "" {
			p.Annotations = nil
		}
		return p
	}
	for name, c := range map[string]struct {
		there         *core.Pod
		foreign, made bool
	}{
		"foreign":               {there: there("node-1", ""), foreign: true},
		"foreign, out of sight": {foreign: true},
		"another node's mirror": {there: there("node-2", "now"), foreign: true},
		"an earlier mirror":     {there: there("node-1", "before")},
		"the mirror":            {there: there("node-1", "now"), made: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			api, events := &taken{there: c.there}, &told{}
			client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: api})
			if err != nil {
				t.Fatal(err)
			}
			node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "n"}}
			m := New(t.Context(), client, podmanager.New(), func() *core.Node { return node }, events, clock.RealClock{}, zap.NewNop())
			for range 10 * 30 { // as housekeeping does for ten minutes
				m.EnsureMirror(pod)
				m.Wait()
				time.Sleep(2 * time.Second) // the bubble's clock
			}
			if often := api.asked > 60; often != c.made {
				t.Errorf("%s: %d calls in ten minutes", name, api.asked)
			}
			if c.foreign != (events.events == api.asked) || c.foreign != strings.HasPrefix(events.last, "static-node-1: FailedMirrorPod: ") {
				t.Errorf("%s: %d events for %d calls, the last %q", name, events.events, api.asked, events.last)
			}
		})
	}
}
