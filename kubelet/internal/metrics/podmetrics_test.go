package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// A mirror pod counts from when the API has it until it is gone there, which is after the end of its static pod.
func TestMirrorsAreCounted(t *testing.T) {
	pods := podmanager.New()
	counted := func() (mirrors float64) {
		p := podMetrics{Sources{Pods: pods, Active: func(*core.Pod) bool { return true }}}
		told := make(chan prometheus.Metric, 100)
		p.collectPods(told, func(desc *prometheus.Desc, value float64, _ ...string) {
			if desc == mirrorsDesc {
				mirrors = value
			}
		})
		return mirrors
	}
	static := &core.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "ns",
		Name:        "web",
		UID:         "s",
		Annotations: map[string]string{core.ConfigSourceAnnotation: core.FileSource, core.ConfigHashAnnotation: "h"},
	}}
	mirror := &core.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "ns",
		Name:        "web",
		UID:         "m",
		Annotations: map[string]string{core.ConfigSourceAnnotation: core.ApiserverSource, core.ConfigMirrorAnnotation: "h"},
	}}
	for _, step := range []struct {
		what string
		do   func()
		want float64
	}{
		{"without a mirror", func() { pods.Set(static) }, 0},
		{"with one", func() { pods.Set(mirror) }, 1},
		{"while the pod ends", func() { pods.Remove(static) }, 1},
		{"when both are gone", func() { pods.Remove(mirror) }, 0},
	} {
		step.do()
		if got := counted(); got != step.want {
			t.Errorf("%s: %v mirror pods, want %v", step.what, got, step.want)
		}
	}
}
