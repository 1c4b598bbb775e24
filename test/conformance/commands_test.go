package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var commands = []behaviour{
	{"Containers should be able to override the image's default arguments (container cmd)", func(w *world) {
		w.prints(w.entry(nil, []string{"override", "arguments"}), "image's entrypoint override arguments")
	}},
	{"Containers should be able to override the image's default command (container entrypoint)", func(w *world) {
		w.prints(w.entry([]string{"/bin/echo", "override command"}, nil), "override command")
	}},
	{"Containers should be able to override the image's default command and arguments", func(w *world) {
		w.prints(w.entry([]string{"/bin/echo", "override command"}, []string{"and arguments"}), "override command and arguments")
	}},
	{"Containers should use the image defaults if command and args are blank", func(w *world) {
		w.prints(w.entry(nil, nil), "image's entrypoint image's arguments")
	}},
}

func (w *world) entry(command, args []string) *corev1.Pod {
	pod := w.script("entry", "")
	c := &pod.Spec.Containers[0]
	c.Image, c.Command, c.Args = w.entrypoint, command, args
	return pod
}

var downward = []behaviour{
	{"Downward API should provide container's limits.cpu/memory and requests.cpu/memory as env vars", downwardResources},
	{"Downward API should provide default limits.cpu/memory from node allocatable", downwardAllocatable},
	{"Downward API should provide host IP as an env var", func(w *world) {
		w.downward(map[string]string{"HOST_IP": "status.hostIP"}, func(p *corev1.Pod) []string { return []string{"HOST_IP=" + p.Status.HostIP} })
	}},
	{"Downward API should provide hostIPs as an env var", func(w *world) {
		w.downward(map[string]string{"HOST_IPS": "status.hostIPs"}, func(p *corev1.Pod) []string { return []string{"HOST_IPS=" + p.Status.HostIPs[0].IP} })
	}},
	{"Downward API should provide pod UID as env vars", func(w *world) {
		w.downward(map[string]string{"POD_UID": "metadata.uid"}, func(p *corev1.Pod) []string { return []string{"POD_UID=" + string(p.UID)} })
	}},
	{"Downward API should provide pod name, namespace and IP address as env vars", func(w *world) {
		w.downward(map[string]string{"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}, func(p *corev1.Pod) []string {
			return []string{"POD_NAME=downward", "POD_NAMESPACE=" + w.ns, "POD_IP=" + p.Status.PodIP}
		})
	}},
}

// downward gives a container the pod's fields and compares what it prints with
// the API.
func (w *world) downward(fields map[string]string, want func(*corev1.Pod) []string) {
	w.t.Helper()
	pod := w.script("downward", "env")
	for name, path := range fields {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, envField(name, path))
	}
	text := "\n" + w.output(pod)
	got, err := w.pods().Get(w.ctx, "downward", metav1.GetOptions{})
	w.must(err)
	for _, line := range want(got) {
		w.contains(text, "\n"+line+"\n")
	}
}

func envResource(name, of string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: of}}}
}

func downwardResources(w *world) {
	pod := w.script("resources", "env")
	c := &pod.Spec.Containers[0]
	c.Env = []corev1.EnvVar{
		envResource("CPU_LIMIT", "limits.cpu"), envResource("MEMORY_LIMIT", "limits.memory"),
		envResource("CPU_REQUEST", "requests.cpu"), envResource("MEMORY_REQUEST", "requests.memory"),
	}
	c.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("25m"), "memory": resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("1250m"), "memory": resource.MustParse("64Mi")},
	}
	w.prints(pod, "CPU_LIMIT=2", "MEMORY_LIMIT=67108864", "CPU_REQUEST=1", "MEMORY_REQUEST=33554432")
}

func downwardAllocatable(w *world) {
	node, err := w.client.CoreV1().Nodes().Get(w.ctx, w.Node, metav1.GetOptions{})
	w.must(err)
	pod := w.script("limits", "env")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{envResource("CPU_LIMIT", "limits.cpu"), envResource("MEMORY_LIMIT", "limits.memory")}
	w.prints(pod, "CPU_LIMIT="+node.Status.Allocatable.Cpu().String(), "MEMORY_LIMIT="+node.Status.Allocatable.Memory().AsDec().String())
}
