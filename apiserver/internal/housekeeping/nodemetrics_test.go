package housekeeping

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

func TestNodesAreCountedByZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, silent := node("a", corev1.ConditionTrue), node("b", corev1.ConditionFalse), node("c", corev1.ConditionUnknown)
		there.Labels = map[string]string{corev1.LabelTopologyRegion: "north", corev1.LabelTopologyZone: "1"}
		silent.Labels = there.Labels
		registry := prometheus.NewRegistry()
		metrics := func(d *Dependencies) (Loop, error) {
			d.Metrics = registry
			return newNodeLifecycle(d)
		}
		run(t, metrics, here, there, silent)
		got := map[string]float64{}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, m := range family.Metric {
				got[family.GetName()+" "+m.Label[0].GetValue()] = m.Gauge.GetValue()
			}
		}
		zone := "north:\x00:1"
		for key, want := range map[string]float64{
			"node_collector_zone_size ": 1, "node_collector_zone_size " + zone: 2,
			"node_collector_unhealthy_nodes_in_zone ": 0, "node_collector_unhealthy_nodes_in_zone " + zone: 2,
		} {
			if value, ok := got[key]; !ok || value != want {
				t.Errorf("%q is %v, %v, want %v", key, value, ok, want)
			}
		}
	})
}
