package admit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

func TestVictims(t *testing.T) {
	node := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("5")}
	sized := func(name, cpu string, priority int32) *core.Pod {
		return pod(name, func(s *core.PodSpec) {
			s.Priority = &priority
			requests := s.Containers[0].Resources.Requests
			if requests[corev1.ResourceCPU] = resource.MustParse(cpu); cpu == "0" {
				delete(requests, corev1.ResourceCPU)
			}
		})
	}
	guaranteed := func(pod *core.Pod) *core.Pod {
		resources := &pod.Spec.Containers[0].Resources
		resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
		resources.Limits = resources.Requests
		return pod
	}
	critical := sized("critical", "1", core.SystemCriticalPriority)
	for _, c := range []struct {
		name    string
		others  []*core.Pod
		leaving string
		want    []string
	}{
		{"no more than it takes", []*core.Pod{sized("a", "500m", 0), sized("b", "500m", 0), sized("c", "500m", 0), sized("d", "500m", 0)}, "", []string{"c", "d"}},
		{"the lower priority", []*core.Pod{sized("low", "1", -5), sized("high", "1", 5)}, "", []string{"low"}},
		{"the lower class", []*core.Pod{guaranteed(sized("guaranteed", "1", -5)), sized("burstable", "1", 5)}, "", []string{"burstable"}},
		{"one that gives nothing is left alone", []*core.Pod{sized("nothing", "0", 0), sized("big", "2", 0)}, "", []string{"big"}},
		{"for their number", []*core.Pod{sized("1", "0", 4), sized("2", "0", 3), sized("3", "0", 1), sized("4", "0", 2), sized("5", "0", 5)}, "", []string{"3"}},
		{"whoever ends anyway", []*core.Pod{sized("low", "1", -5), sized("high", "1", 5)}, "high", []string{"high"}},
		{"as critical", []*core.Pod{sized("a", "2", core.SystemCriticalPriority)}, "", nil},
		{"too little", []*core.Pod{sized("a", "500m", 0), sized("b", "1500m", core.SystemCriticalPriority)}, "", nil},
		{"less critical", []*core.Pod{sized("a", "2", core.SystemCriticalPriority-1)}, "", []string{"a"}},
	} {
		victims := Victims(critical, c.others, node, func(pod *core.Pod) bool { return pod.Name == c.leaving })
		var names []string
		for _, victim := range victims {
			names = append(names, victim.Name)
		}
		slices.Sort(names)
		slices.Sort(c.want)
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: %v, want %v", c.name, names, c.want)
		}
	}
}

// Only a lack of resources counts as one.
func TestNoRoom(t *testing.T) {
	big := pod("p", func(s *core.PodSpec) {
		s.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("2Gi")
	})
	if d := Pod(big, nil, node(), false); d.InsufficientResource != corev1.ResourceMemory {
		t.Errorf("decision %+v", d)
	}
	big.Spec.NodeName = "m"
	if d := Pod(big, nil, node(), false); d.Admitted || d.InsufficientResource != "" {
		t.Errorf("decision %+v", d)
	}
}
