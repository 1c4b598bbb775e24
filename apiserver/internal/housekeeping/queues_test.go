package housekeeping

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
)

// TestQueuesAreMeasured: the metrics are those of client-go's queues, of which dashboards know.
func TestQueuesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		d := &Dependencies{Clock: clock.RealClock{}, Logger: zap.NewNop(), Queues: NewQueues(registry, clock.RealClock{})}
		failed := false
		work := func(context.Context, informer.Key) (time.Duration, error) {
			<-time.After(5 * time.Second)
			if !failed {
				failed = true
				return 0, context.DeadlineExceeded
			}
			return 0, nil
		}
		w, other := newWorker("test", d, 1, work), newWorker("test", d, 1, work)
		for _, name := range []string{"a", "b", "b", "c"} {
			w.add(informer.Key{Name: name})
		}
		w.addAfter(informer.Key{Name: "later"}, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		done := runAllOf(ctx, w.run, other.run)
		pass(2 * time.Second)
		expect := func(moment string, want map[string]float64) {
			t.Helper()
			for name, value := range want {
				if got := metricOf(t, registry, "workqueue_"+name); got != value {
					t.Errorf("%s: %s is %v, want %v", moment, name, got, value)
				}
			}
		}
		expect("while it works", map[string]float64{
			"adds_total": 4, "retries_total": 0, "depth": 2, "unfinished_work_seconds": 2, "longest_running_processor_seconds": 2,
			"queue_duration_seconds": 1, "work_duration_seconds": 0,
		})
		pass(3 * time.Hour)
		expect("afterwards", map[string]float64{
			"adds_total": 5, "retries_total": 1, "depth": 0, "unfinished_work_seconds": 0, "longest_running_processor_seconds": 0, "queue_duration_seconds": 5,
			"work_duration_seconds": 5,
		})
		cancel()
		<-done
		w.add(informer.Key{Name: "a"})
		expect("when it has ended", map[string]float64{"adds_total": 6, "depth": 0})
	})
}

// TestQueuesHaveUpstreamsBuckets: kube-controller-manager counts its own queues in
// the same ones, from ten nanoseconds to ten seconds.
func TestQueuesHaveUpstreamsBuckets(t *testing.T) {
	registry := prometheus.NewRegistry()
	q := NewQueues(registry, clock.RealClock{})
	q.waited.WithLabelValues("test").Observe(1)
	q.worked.WithLabelValues("test").Observe(1)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"} {
		at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
		if at < 0 {
			t.Errorf("there is no %s", name)
			continue
		}
		buckets := families[at].GetMetric()[0].GetHistogram().GetBucket()
		if first, last := buckets[0].GetUpperBound(), buckets[len(buckets)-1].GetUpperBound(); len(buckets) != 10 || first != 1e-8 || math.Round(last) != 10 {
			t.Errorf("%s: %d buckets from %v to %v", name, len(buckets), first, last)
		}
	}
}

// metricOf is the value of a metric for the name "test", or the number of observations.
func metricOf(t *testing.T, registry prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() != name || m.GetLabel()[0].GetValue() != "test" {
				continue
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Errorf("there is no %s", name)
	return 0
}
