package daemon

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestFeatures(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Features(map[string]bool{"NodeSwap": false})...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[family.GetName()+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue()
		}
	}
	// Upstream has 254 gates in 1.37, and these in these stages.
	if n, err := testutil.GatherAndCount(registry, "kubernetes_feature_enabled"); n != 254 || err != nil {
		t.Errorf("%d gates, %v", n, err)
	}
	for name, want := range map[string]float64{
		"kubernetes_feature_enabled AllAlpha ALPHA":                         0,
		"kubernetes_feature_enabled APIServerIdentity BETA":                 1,
		"kubernetes_feature_enabled CoordinatedLeaderElection BETA":         0,
		"kubernetes_feature_enabled EventedPLEG ALPHA":                      0,
		"kubernetes_feature_enabled ImageVolume ":                           1,
		"kubernetes_feature_enabled SELinuxMount ":                          1,
		"kubernetes_feature_enabled StorageNamespaceIndex DEPRECATED":       1,
		"kubernetes_feature_enabled WindowsHostNetwork DEPRECATED":          0,
		"kubernetes_feature_enabled GitRepoVolumeDriver DEPRECATED":         0,
		"kubernetes_feature_enabled DisableNodeKubeProxyVersion DEPRECATED": 1,
		"kubernetes_feature_enabled NodeSwap ":                              0, // a feature that the program lacks
		"version_info 1.37 kube 1.37 1.36":                                  1,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s: %v, there: %t", name, value, there)
		}
	}
}
