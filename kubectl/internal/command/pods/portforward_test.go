package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/proto/core"
)

func TestPodPort(t *testing.T) {
	pod := &core.Pod{}
	pod.Name = "web"
	pod.Spec.Containers = []core.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {ContainerPort: 9},
		{Name: "dns", ContainerPort: 53, Protocol: "UDP"},
		{ContainerPort: 54, Protocol: "UDP"}, {ContainerPort: 54, Protocol: "TCP"}}}}
	service := &corev1.Service{}
	service.Kind, service.Name = "Service", "shop"
	service.Spec.Ports = []corev1.ServicePort{{Name: "plain", Port: 80, TargetPort: intstr.FromString("http")},
		{Name: "number", Port: 81, TargetPort: intstr.FromInt32(9000)},
		{Name: "udp", Port: 83, TargetPort: intstr.FromInt32(53), Protocol: "UDP"}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(service)
	if err != nil {
		t.Fatal(err)
	}
	behind := &unstructured.Unstructured{Object: content}
	for _, c := range []struct {
		object       *unstructured.Unstructured
		wanted, want string
	}{
		{nil, "80", "80:80"}, {nil, "8000:80", "8000:80"}, {nil, ":80", ":80"}, {nil, "http", "8080:8080"}, {nil, "1:http", "1:8080"}, {nil, "other", ""},
		{behind, "80", "80:8080"}, {nil, ":", ""}, {nil, "80:", ""}, {nil, "53", ""}, {nil, "1:dns", ""}, {nil, "54", "54:54"},
		{behind, "plain", "80:8080"}, {behind, ":plain", ":8080"}, {behind, "udp", ""}, {behind, "83", ""}, {behind, "5000:plain", "5000:8080"},
		{behind, "81", "81:9000"}, {behind, "82", ""},
	} {
		got, err := podPort(pod, c.object, c.wanted)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s of %v: %q, %v, want %q", c.wanted, c.object != nil, got, err, c.want)
		}
	}
}
