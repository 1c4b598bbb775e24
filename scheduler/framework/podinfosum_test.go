package framework

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// The request of a pod with one container is the sum over all of its parts.
func TestPodsThatAskAsTheirContainer(t *testing.T) {
	for name, asked := range map[string]map[corev1.ResourceName]string{
		"nothing":   nil,
		"empty":     {},
		"all":       {"cpu": "250m", "memory": "1Gi", "ephemeral-storage": "5M", "example.org/gpu": "2", "hugepages-2Mi": "4Mi", "odd": "3"},
		"zeros":     {"cpu": "0", "memory": "0"},
		"fractions": {"cpu": "0.0001", "memory": "0.5"},
		"cpu only":  {"cpu": "3"},
		"too much":  {"cpu": "9E", "memory": "9999999999999999999", "example.org/gpu": "9E"},
	} {
		t.Run(name, func(t *testing.T) {
			var list corev1.ResourceList
			if asked != nil {
				list = corev1.ResourceList{}
			}
			for name, quantity := range asked {
				list[name] = resource.MustParse(quantity)
			}
			pod := &core.Pod{Spec: core.PodSpec{Containers: []core.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list}}}}}
			if !asksAsItsContainer(pod) {
				t.Fatal("the pod is taken for one that asks otherwise")
			}
			quick, summed := &PodInfo{Pod: pod}, &PodInfo{Pod: pod}
			quick.sumContainer()
			summed.sum()
			if !reflect.DeepEqual(quick, summed) {
				t.Errorf("asks for %+v scored as %+v, the sum is %+v and %+v", quick.Requests, quick.ScoredRequests, summed.Requests, summed.ScoredRequests)
			}
		})
	}
}

// A container without requests counts with defaults, but in a pod with
// pod-level requests only for resources that neither the pod nor its containers
// nor its overhead requests.
func TestDefaultsOfPodsThatAskAsAWhole(t *testing.T) {
	list := func(name corev1.ResourceName, quantity string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(quantity)}
	}
	for name, test := range map[string]struct {
		whole, overhead, container corev1.ResourceList
		cpu, memory                int64
	}{
		"memory":                      {whole: list("memory", "1Gi"), cpu: DefaultMilliCPURequest, memory: 1 << 30},
		"memory, with CPU beside":     {whole: list("memory", "1Gi"), overhead: list("cpu", "250m"), cpu: 250, memory: 1 << 30},
		"memory, with CPU in it":      {whole: list("memory", "1Gi"), container: list("cpu", "50m"), cpu: 50, memory: 1 << 30},
		"CPU, with memory beside":     {whole: list("cpu", "1"), overhead: list("memory", "1Mi"), cpu: 1000, memory: 1 << 20},
		"nothing, with memory beside": {overhead: list("memory", "1Mi"), cpu: DefaultMilliCPURequest, memory: DefaultMemoryRequest + 1<<20},
	} {
		pod := &core.Pod{Spec: core.PodSpec{Overhead: test.overhead, Containers: []core.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: test.container}}}}}
		if test.whole != nil {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: test.whole}
		}
		if got := NewPodInfo(pod).ScoredRequests; got.MilliCPU != test.cpu || got.Memory != test.memory {
			t.Errorf("%s: %d, %d, want %d, %d", name, got.MilliCPU, got.Memory, test.cpu, test.memory)
		}
	}
}
