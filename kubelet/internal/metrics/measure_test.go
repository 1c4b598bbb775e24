package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/status"
)

// A runtime may give any reason and exit code. Each makes a metric, of which there must not be
// more and more.
func TestEndsForOddReasons(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	for i := range 1000 {
		m.ObserveEnd(status.AppContainer, &corev1.ContainerStateTerminated{ExitCode: int32(1000 - i*2000), Reason: fmt.Sprint("reason ", i)})
	}
	m.ObserveEnd(status.AppContainer, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if strings.HasSuffix(family.GetName(), "terminated_containers_total") {
				told = append(told, fmt.Sprint(one.GetLabel()[1].GetValue(), " ", one.GetLabel()[2].GetValue(), " ", one.GetCounter().GetValue()))
			}
		}
	}
	if want := "137 OOMKilled 1, other other 1000"; strings.Join(told, ", ") != want {
		t.Errorf("%q, want %q", told, want)
	}
}
