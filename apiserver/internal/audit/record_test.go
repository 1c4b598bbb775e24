package audit

import (
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
)

// TestEarlyAnnotations: what is found out before it is known whether a request is recorded is in its
// events; from then on, nothing is kept of one that is not.
func TestEarlyAnnotations(t *testing.T) {
	for level, kept := range map[Level]bool{Metadata: true, None: false} {
		p, err := load(t, "rules: [{level: "+string(level)+"}]")
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/api/v1/pods", nil)
		ctx := WithEarly(request.With(r.Context(), &request.Arrival{Info: request.Parse(r)}))
		Annotate(ctx, "a/early", "1")
		record := New(p, nil, prometheus.NewRegistry(), clock.RealClock{}).Begin(r.WithContext(ctx), nil)
		if (record != nil) != kept || kept && record.event.Annotations["a/early"] != "1" {
			t.Fatalf("%s: %+v", level, record)
		}
		Annotate(ctx, "a/late", "2")
		if left := ctx.Value(earlyKey{}).(*early).annotations; len(left) > 0 {
			t.Errorf("%s: %v are kept for nothing", level, left)
		}
	}
}
