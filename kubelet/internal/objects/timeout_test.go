package objects

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
)

// An API server that does not even refuse is as much away as any: its timeout is not the caller's.
func TestServedWhileTheAPITimesOut(t *testing.T) {
	var silent atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() {
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(configMap("1"))
	}))
	t.Cleanup(server.Close)
	client, err := rest.New(&rest.Config{Host: server.URL, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	o := New(client, clock.RealClock{}, kubeletv1beta1.TTLCacheChangeDetectionStrategy, zap.NewNop())
	o.Register(pod("a"))
	value(t, o)
	silent.Store(true)
	o.Renew("a")
	if got := value(t, o); got != "1" {
		t.Errorf("while the API is silent %q", got)
	}
}
