package kubelet

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/node"
)

func TestProcessesOfPods(t *testing.T) {
	for reserved, want := range map[string]int64{"0": 1000, "300": 700, "2k": 1} {
		if got := processesOfPods(1000, corev1.ResourceList{"pid": resource.MustParse(reserved)}); got != want {
			t.Errorf("with %s reserved %d, want %d", reserved, got, want)
		}
	}
	if got := processesOfPods(0, corev1.ResourceList{"pid": resource.MustParse("5")}); got != 0 {
		t.Errorf("of a machine that does not tell: %d", got)
	}
}

// The bound on all pods excludes what eviction thresholds keep free; otherwise
// the kernel would kill processes before pods are evicted.
func TestBoundOfPods(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	bound := boundOfPods(list("2", "1Gi"), config.SumOf(list("100m", "100Mi"), list("400m", "156Mi")))
	if bound.Cpu().String() != "1500m" || bound.Memory().String() != "768Mi" {
		t.Errorf("%v", bound)
	}
	if bound := boundOfPods(list("2", "1Gi"), list("2", "0")); !bound.Cpu().IsZero() || len(bound) != 2 {
		t.Errorf("with all cpus reserved, which leaves the least share to pods: %v", bound)
	}
}

// A kubelet whose reservations are more than its machine has does not start: its pods would have no bound.
func TestMoreIsReservedThanThereIs(t *testing.T) {
	b, runtime := newHollowBed(t, nil)
	b.stop()
	c := *b.config
	c.Allocatable.SystemReserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Gi"), corev1.ResourceCPU: resource.MustParse("8")}
	c.Allocatable.KubeReserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("13Gi")}
	_, err := NewHollow(t.Context(), &c, Hollow{Runtime: runtime, Machine: node.Machine{CPUs: 8, Memory: 32 << 30}},
		clock.RealClock{}, zaptest.NewLogger(t), prometheus.NewRegistry())
	const want = "memory: 33Gi are reserved, and the machine has 32Gi: "
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "cpu") {
		t.Errorf("%v, want %s", err, want)
	}
}
