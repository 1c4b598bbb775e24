package audit

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/request"
)

// TestSlow: only the events of requests that take longer than half a second
// show where the time went.
func TestSlow(t *testing.T) {
	p, err := load(t, "rules: [{level: Metadata}]")
	if err != nil {
		t.Fatal(err)
	}
	for took, want := range map[time.Duration]string{
		500 * time.Millisecond: `null`,
		501 * time.Millisecond: `{"apiserver.latency.k8s.io/etcd":"7ms","apiserver.latency.k8s.io/mutating-webhook":"400ms","apiserver.latency.k8s.io/total":"501ms"}`,
	} {
		clock := testingclock.NewFakePassiveClock(time.Now())
		r := httptest.NewRequest("POST", "/api/v1/namespaces/a/pods", nil)
		ctx := request.With(r.Context(), &request.Arrival{At: clock.Now(), Info: request.Parse(r)})
		record := New(p, nil, prometheus.NewRegistry(), clock).Begin(r.WithContext(ctx), nil)
		request.Spent(ctx, request.MutatingWebhooks, 300*time.Millisecond)
		request.Spent(ctx, request.MutatingWebhooks, 100*time.Millisecond)
		request.Spent(ctx, request.Storage, 7*time.Millisecond)
		clock.SetTime(clock.Now().Add(took))
		record.Slow(ctx)
		if got, err := json.Marshal(record.event.Annotations); err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", took, got, err, want)
		}
	}
}
