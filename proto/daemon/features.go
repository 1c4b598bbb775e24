package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/release"
)

// Features returns upstream's metrics of what a program can do: the feature gates, which
// are as upstream's by default except for those in differs, and the versions of
// Kubernetes that it is compatible with.
func Features(differs map[string]bool) []prometheus.Collector {
	gates := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubernetes_feature_enabled", Help: "Whether the feature of a gate is there, by the gate's stage.",
	}, []string{"name", "stage"})
	for _, gate := range release.Gates(differs) {
		there := 0.0
		if gate.Enabled {
			there = 1
		}
		gates.WithLabelValues(gate.Name, gate.Stage).Set(there)
	}
	version := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "version_info", Help: "Versions of Kubernetes: the one it is built for, the one it acts as, and the oldest that it works with.",
		ConstLabels: prometheus.Labels{
			"component": "kube", "binary": release.Kubernetes, "emulation": release.Kubernetes, "min_compat": release.Previous,
		},
	}, func() float64 { return 1 })
	return []prometheus.Collector{gates, version}
}
