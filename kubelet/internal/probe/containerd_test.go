package probe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Probes of a real container in a network of its own, by command, HTTP and TCP.
func TestProberOnContainerd(t *testing.T) {
	client := critest.Start(t).Client()
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "ns", Uid: "uid-1"},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}
	sandboxID, err := client.RunPodSandbox(t.Context(), sandbox, "")
	if err != nil {
		t.Fatal(err)
	}
	status, err := client.PodSandboxStatus(t.Context(), sandboxID)
	if err != nil {
		t.Fatal(err)
	}
	id, err := client.CreateContainer(t.Context(), sandboxID, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
		Image:    &runtimeapi.ImageSpec{Image: critest.BusyboxImage},
		Command:  []string{"/bin/sh", "-c", "mkdir /w; echo fine > /w/ok; httpd -f -p 8080 -h /w"},
	}, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	prober := NewProber(client, func() string { return "127.0.0.1" })
	seconds := int32(60)
	ask := func(handler corev1.ProbeHandler) (Answer, error) {
		return prober.Probe(t.Context(), Target{
			Pod: &core.Pod{}, Container: &core.Container{Name: "c"}, ID: runtimestate.ContainerID{Type: "containerd", ID: id},
			IP: status.GetNetwork().GetIp(), Probe: withDefaults(&corev1.Probe{ProbeHandler: handler, TimeoutSeconds: seconds}),
		})
	}
	exec := func(command ...string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
	}
	get := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}}
	}
	tcp := func(port int32) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
	}
	// The server takes a moment to listen.
	a, err := ask(exec("/bin/sh", "-c", "until wget -q -O /dev/null http://127.0.0.1:8080/ok; do :; done; echo up"))
	expectAnswer(t, "exec", a, err, Success, "up")
	a, err = ask(exec("/bin/false"))
	expectAnswer(t, "exec that fails", a, err, Failure, "")
	seconds = 1
	a, err = ask(exec("/bin/sleep", "100"))
	expectAnswer(t, "exec that hangs", a, err, Failure, `command timed out: "/bin/sleep 100" timed out after 1s`)
	seconds = 60
	a, err = ask(get("/ok"))
	expectAnswer(t, "httpGet", a, err, Success, "fine")
	a, err = ask(get("/none"))
	expectAnswer(t, "httpGet of nothing", a, err, Failure, "HTTP probe failed with statuscode: 404")
	a, err = ask(tcp(8080))
	expectAnswer(t, "tcpSocket", a, err, Success, "")
	a, err = ask(tcp(8081))
	expectAnswer(t, "tcpSocket of nothing", a, err, Failure, "connection refused")
}
