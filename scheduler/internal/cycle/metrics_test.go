package cycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"kctl/proto/core"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/metrics"
)

// The names and labels are those in kube-scheduler v1.37.0's /metrics.
func TestMetricsHaveUpstreamsNames(t *testing.T) {
	roomy := fixture.Allocatable("cpu", "20")
	withScheduler(t, []*core.Node{fixture.Node("n1", roomy), fixture.Node("n2", roomy)}, func(t *testing.T, c *cluster, s *running) {
		for i := range 40 + 4 { // and four that fit nowhere
			c.create(fixture.Pod(fmt.Sprint("p", i), fixture.Requests("cpu", "1")))
		}
		time.Sleep(20 * time.Minute) // some are flushed, and refused again
		for i := range 2 {           // two of the four get a node after all
			c.delete(fmt.Sprint("p", i))
		}
		synctest.Wait()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(s.metrics, metrics.Gauges{
			Pending: s.queue.Pending, Unschedulable: s.queue.Unschedulable, Inflight: s.queue.Inflight,
			CacheSizes: s.cache.Sizes, Leading: func() bool { return true },
		})
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for name, labels := range map[string]string{
			"scheduler_framework_extension_point_duration_seconds": "extension_point=Filter,profile=default-scheduler,status=Success",
			"scheduler_plugin_execution_duration_seconds":          "extension_point=Score,plugin=NodeResourcesFit,status=Success",
			"scheduler_unschedulable_pods":                         "plugin=NodeResourcesFit,profile=default-scheduler",
			"scheduler_pod_scheduled_after_flush_total":            "",
			"scheduler_cache_size":                                 "type=assumed_pods",
			"scheduler_pending_pods":                               "queue=unschedulable",
			"scheduler_schedule_attempts_total":                    "profile=default-scheduler,result=scheduled",
			"scheduler_scheduling_attempt_duration_seconds":        "profile=default-scheduler,result=unschedulable",
			"scheduler_pod_scheduling_sli_duration_seconds":        "attempts=1",
			"scheduler_queue_incoming_pods_total":                  "event=UnscheduledPodAdd,queue=active",
			"scheduler_preemption_attempts_total":                  "",
			"scheduler_plugin_evaluation_total":                    "extension_point=Score,plugin=NodeResourcesFit,profile=default-scheduler",
			"scheduler_goroutines":                                 "operation=binding",
			"scheduler_event_handling_duration_seconds":            "event=AssignedPodDelete",
			"scheduler_queue_incoming_entities_total":              "event=UnscheduledPodAdd,queue=active,type=pod",
			"scheduler_queued_entities":                            "queue=unschedulable,type=pod",
		} {
			i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
			if i < 0 || !slices.ContainsFunc(families[i].GetMetric(), func(m *dto.Metric) bool { return labelsOf(m) == labels }) {
				t.Errorf("there is no %s{%s}", name, labels)
			}
		}
	})
}

func labelsOf(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(pairs, ",")
}
