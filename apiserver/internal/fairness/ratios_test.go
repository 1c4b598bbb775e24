package fairness

import (
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"kctl/apiserver/internal/request"
)

// TestUtilization: the histograms over time have for how long so much of a
// level was used and waited for, and the counter, how often a turn was missed.
func TestUtilization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		level := levelOf("l", 100, oneQueue)
		w := start(t, 10, only(level))
		time.Sleep(time.Second) // unused
		first, second := w.ticket("jane"), w.ticket("jane")
		if !first.Enter(t.Context(), 1, time.Minute) || !second.Enter(t.Context(), 1, time.Minute) {
			t.Fatal("refused")
		}
		time.Sleep(2 * time.Second) // with two
		whole, entered := w.ticket("jane"), make(chan bool, 1)
		whole.schema.most = 10
		go func() { entered <- whole.Enter(request.With(t.Context(), &request.Arrival{}), 10, time.Minute) }()
		synctest.Wait()
		time.Sleep(4 * time.Second) // with two, and one that needs all seats
		first.Leave()
		second.Leave()
		if !<-entered {
			t.Fatal("the seats that came free did not help")
		}
		time.Sleep(time.Second) // with all
		whole.Leave()
		time.Sleep(time.Second) // unused
		for _, c := range []struct {
			name, phase string
			upTo        float64
			want        time.Duration
		}{
			{"priority_level_seat_utilization", "executing", 0, 2 * time.Second},
			{"priority_level_seat_utilization", "executing", 0.3, 8 * time.Second},
			{"priority_level_seat_utilization", "executing", 1, 9 * time.Second},
			{"priority_level_request_utilization", "executing", 0, 2 * time.Second},
			{"priority_level_request_utilization", "executing", 0.25, 9 * time.Second},
			{"priority_level_request_utilization", "waiting", 0, 5 * time.Second},
			{"priority_level_request_utilization", "waiting", 0.5, 9 * time.Second},
			{"demand_seats", "", 0.4, 4 * time.Second},
			{"demand_seats", "", 1, 5 * time.Second},
			{"demand_seats", "", 1.2, 9 * time.Second},
		} {
			if got := w.spent(c.name, c.phase, c.upTo); got != c.want {
				t.Errorf("%s of phase %q was up to %v for %v, want %v", c.name, c.phase, c.upTo, got, c.want)
			}
		}
		w.metrics(`
			# HELP apiserver_flowcontrol_request_dispatch_no_accommodation_total Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats
			# TYPE apiserver_flowcontrol_request_dispatch_no_accommodation_total counter
			apiserver_flowcontrol_request_dispatch_no_accommodation_total{flow_schema="own",priority_level="l"} 2
			`, metricPrefix+"request_dispatch_no_accommodation_total")
		w.apply(Configuration{})
		if got := w.spent("demand_seats", "", 6); got != 0 {
			t.Errorf("a level that has gone counts for %v", got)
		}
	})
}

// spent is how long the ratio called name was in the buckets up to a bound, for
// the level "l".
func (w *world) spent(name, phase string, upTo float64) time.Duration {
	w.t.Helper()
	for _, metric := range w.metricsOf(name) {
		labels := labelsOf(metric)
		if labels["priority_level"] != "l" || labels["phase"] != phase {
			continue
		}
		for _, bucket := range metric.GetHistogram().GetBucket() {
			if bucket.GetUpperBound() == upTo {
				return time.Duration(bucket.GetCumulativeCount())
			}
		}
	}
	return 0
}

// metricsOf are the metrics with a name, whatever their labels.
func (w *world) metricsOf(name string) []*dto.Metric {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == metricPrefix+name {
			return family.GetMetric()
		}
	}
	return nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
