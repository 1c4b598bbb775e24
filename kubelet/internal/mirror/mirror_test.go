package mirror

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		m := New(t.Context(), client, podmanager.New(), func() *core.Node { return node }, clock.RealClock{}, zap.NewNop())
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
		m := New(ctx, client, podmanager.New(), func() *core.Node { return node }, clock.RealClock{}, zap.NewNop())
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
