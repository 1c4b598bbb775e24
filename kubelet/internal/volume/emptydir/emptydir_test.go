package emptydir

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

func TestPagesThatPodsRequest(t *testing.T) {
	list := func(names ...corev1.ResourceName) corev1.ResourceList {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		for _, name := range names {
			list[name] = resource.MustParse("4Mi")
		}
		return list
	}
	of := func(requests corev1.ResourceList) core.Container {
		return core.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	const small, large = corev1.ResourceName("hugepages-2Mi"), corev1.ResourceName("hugepages-1Gi")
	pod := func(pod, init, container corev1.ResourceList) *core.Pod {
		p := &core.Pod{Spec: core.PodSpec{InitContainers: []core.Container{of(init)}, Containers: []core.Container{of(container)}}}
		if pod != nil {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: pod}
		}
		return p
	}
	const several, none = "medium: HugePages can't be used if container requests multiple huge page sizes",
		"medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages"
	for _, c := range []struct {
		medium corev1.StorageMedium
		pod    *core.Pod
		size   int64
		err    string
	}{
		{"HugePages", pod(nil, nil, list(small)), 2 << 20, ""},
		{"HugePages", pod(nil, list(large), nil), 1 << 30, ""},
		{"HugePages", pod(list(large), nil, list(large)), 1 << 30, ""},
		{"HugePages", pod(nil, list(large), list(small)), 0, several},
		{"HugePages", pod(nil, nil, list(small, large)), 0, several},
		{"HugePages-2Mi", pod(nil, nil, list(small, large)), 2 << 20, ""},
		{"HugePages-1024Mi", pod(nil, nil, list(small, large)), 1 << 30, ""},
		{"HugePages-1Gi", pod(nil, nil, list(small)), 0, none},
		{"HugePages-1Gi", pod(nil, nil, nil), 0, none},
	} {
		size, err := requestedPages(c.pod, c.medium)
		if size != c.size || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %d, %v; want %d, %q", c.medium, size, err, c.size, c.err)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for medium, want := range map[corev1.StorageMedium]string{
		"": "", "Memory": "", "HugePages": "", "HugePages-2Mi": "", "HugePages-": "HugePages-", "HugePages-x": "HugePages-x", "HugePages--2Mi": "HugePages--2Mi",
		"Tape": "Tape",
	} {
		if got := Unsupported(&corev1.EmptyDirVolumeSource{Medium: medium}); got != want {
			t.Errorf("%q: %q", medium, got)
		}
	}
}
