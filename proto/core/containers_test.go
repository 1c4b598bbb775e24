package core

import (
	"iter"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestFindContainer(t *testing.T) {
	of := func(names ...string) (all []Container) {
		for _, name := range names {
			all = append(all, Container{Name: name})
		}
		return all
	}
	pod := &Pod{Spec: PodSpec{InitContainers: of("init", "sidecar"), Containers: of("a", "b")}}
	for _, name := range []string{"e", "f"} {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
	}
	for _, name := range []string{"init", "sidecar", "a", "b", "e", "f"} {
		if c := FindContainer(pod, name); c == nil || c.Name != name {
			t.Errorf("%s: found %v", name, c)
		}
	}
	if c := FindContainer(pod, "b"); c != &pod.Spec.Containers[1] {
		t.Error("a copy is found, and not the pod's own")
	}
	if c := FindContainer(pod, "other"); c != nil {
		t.Errorf("found %v, which the pod does not have", c.Name)
	}
}

func TestContainersAreInTheOrderTheyRun(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	spec := &PodSpec{
		InitContainers: []Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}},
		Containers:     []Container{{Name: "a"}, {Name: "b"}},
	}
	for name, test := range map[string]struct {
		of   func(*PodSpec) iter.Seq[*Container]
		want []string
	}{
		"all":     {Containers, []string{"init", "sidecar", "a", "b"}},
		"lasting": {LastingContainers, []string{"sidecar", "a", "b"}},
	} {
		var got []string
		for c := range test.of(spec) {
			got = append(got, c.Name)
			c.Image = name
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
		if spec.Containers[1].Image != name {
			t.Errorf("%s: a copy is changed, and not the pod", name)
		}
		for n := range test.want {
			seen := 0
			for range test.of(spec) {
				if seen++; seen > n {
					break
				}
			}
			if seen != n+1 {
				t.Errorf("%s: %d were seen until the loop ended, want %d", name, seen, n+1)
			}
		}
	}
}
