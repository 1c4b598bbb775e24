package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/config"
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
	if bound := boundOfPods(list("2", "1Gi"), list("3", "1Gi")); len(bound) != 0 {
		t.Errorf("with all of it reserved %v", bound)
	}
}
