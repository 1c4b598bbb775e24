package fieldpath

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestMetadata(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{
		Name:        "p",
		Namespace:   "n",
		UID:         "u",
		Labels:      map[string]string{"b": "2", "a": "say \"x\"\n"},
		Annotations: map[string]string{"example.com/k": "v"},
	}}
	for path, want := range map[string]string{
		"metadata.name":                         "p",
		"metadata.namespace":                    "n",
		"metadata.uid":                          "u",
		"metadata.labels":                       "a=\"say \\\"x\\\"\\n\"\nb=\"2\"",
		"metadata.annotations":                  `example.com/k="v"`,
		"metadata.labels['b']":                  "2",
		"metadata.labels['none']":               "",
		"metadata.annotations['example.com/k']": "v",
	} {
		if got, err := Metadata(pod, path); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"", "status.podIP", "metadata.labels['b'", "metadata.labels[b]"} {
		if got, err := Metadata(pod, path); err == nil {
			t.Errorf("%s = %q, want an error", path, got)
		}
	}
}

func TestResource(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	pod := &core.Pod{Spec: core.PodSpec{
		Containers: []core.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Limits: list("cpu", "1500m"), Requests: list("cpu", "250m", "memory", "100Mi"),
		}}},
		InitContainers: []core.Container{{Name: "i", Resources: corev1.ResourceRequirements{Limits: list("hugepages-2Mi", "4Mi")}}},
	}}
	allocatable := list("cpu", "8", "memory", "2Gi", "ephemeral-storage", "10Gi")
	for _, c := range []struct{ container, resource, divisor, want string }{
		{"c", "limits.cpu", "0", "2"},
		{"c", "limits.cpu", "1m", "1500"},
		{"c", "requests.cpu", "1", "1"},
		{"c", "requests.memory", "1Mi", "100"},
		{"c", "limits.memory", "1Mi", "2048"},
		{"c", "limits.ephemeral-storage", "1Gi", "10"},
		{"c", "requests.ephemeral-storage", "1", "0"},
		{"i", "limits.hugepages-2Mi", "1Mi", "4"},
		{"i", "limits.cpu", "1", "8"},
	} {
		got, err := Resource(pod, "", &corev1.ResourceFieldSelector{ContainerName: c.container, Resource: c.resource, Divisor: resource.MustParse(c.divisor)},
			allocatable)
		if err != nil || got != c.want {
			t.Errorf("%s of %s by %s = %q, %v; want %q", c.resource, c.container, c.divisor, got, err, c.want)
		}
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: list("cpu", "3", "memory", "1Gi")}
	for _, c := range []struct{ container, resource, want string }{
		{"c", "limits.cpu", "2"}, {"i", "limits.cpu", "3"}, {"c", "limits.memory", "1073741824"}, {"c", "limits.ephemeral-storage", "10737418240"},
	} {
		if got, err := Resource(pod, c.container, &corev1.ResourceFieldSelector{Resource: c.resource}, allocatable); err != nil || got != c.want {
			t.Errorf("%s of %s in a pod with limits = %q, %v; want %q", c.resource, c.container, got, err, c.want)
		}
	}
	for _, c := range []struct{ container, resource, want string }{
		{"none", "limits.cpu", `container "none" not found`},
		{"c", "limits.gpu", "unsupported container resource"},
		{"c", "cpu", "unsupported container resource"},
	} {
		_, err := Resource(pod, c.container, &corev1.ResourceFieldSelector{Resource: c.resource}, allocatable)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.resource, c.container, err, c.want)
		}
	}
}
