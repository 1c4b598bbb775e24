package resources_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// TestADefinitionWithABuiltInName: a definition may have the name of a built-in resource,
// which then appears once in the metrics; twice would make the whole page an error.
func TestADefinitionWithABuiltInName(t *testing.T) {
	b := start(t)
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(resources.CacheMetrics{Builtin: b.Set, Custom: func(yield func(core.Resource, cache.Stats) bool) {
		yield(core.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}, cache.Stats{Objects: 7})
	}})
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "apiserver_storage_objects" && m.GetLabel()[0].GetValue() == "deployments.apps" && m.GetGauge().GetValue() != 0 {
				t.Errorf("there are %v deployments, as the definition's store has it", m.GetGauge().GetValue())
			}
		}
	}
}
