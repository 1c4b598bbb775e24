package volume

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/cri/critest"
	"kctl/proto/core"
)

// What a container sees of its volumes: their content, new content without a
// restart, only the part named by subPath; and it can't write where it must
// not.
func TestVolumesInAContainer(t *testing.T) {
	needsMounts(t)
	client := critest.Start(t).Client()
	s := newStore()
	m := newManager(t, s)
	pod := podWith(configMapVolume("m", false), secretVolume(), tokenVolume(), emptyDirVolume("scratch", ""), emptyDirVolume("ram", corev1.StorageMediumMemory))
	mustMount(t, m, pod)
	c := &core.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{
		{Name: "config", MountPath: "/config"},
		{Name: "config", MountPath: "/one/key", SubPath: "k"},
		{Name: "secret", MountPath: "/secret"},
		{Name: "api", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
		{Name: "scratch", MountPath: "/mine", SubPathExpr: "of/$(NAME)"},
		{Name: "ram", MountPath: "/ram"},
	}}
	mounts, err := m.Mounts(t.Context(), pod, c, map[string]string{"NAME": "me"})
	must(t, err)
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
		Image:    &runtimeapi.ImageSpec{Image: critest.BusyboxImage},
		Command:  []string{"/bin/sleep", "1000"},
	}
	for _, one := range mounts {
		config.Mounts = append(config.Mounts, &runtimeapi.Mount{ContainerPath: one.ContainerPath, HostPath: one.HostPath, Readonly: one.ReadOnly})
	}
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "ns", Uid: string(pod.UID)},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}
	sandboxID, err := client.RunPodSandbox(t.Context(), sandbox, "")
	must(t, err)
	id, err := client.CreateContainer(t.Context(), sandboxID, config, sandbox)
	must(t, err)
	must(t, client.StartContainer(t.Context(), id))

	says := func(want, command string) {
		t.Helper()
		got, err := client.ExecSync(t.Context(), id, []string{"/bin/sh", "-c", command}, time.Minute)
		if text := strings.TrimSpace(string(got.Stdout) + string(got.Stderr)); err != nil || text != want {
			t.Errorf("%s: %q, %v; want %q", command, text, err, want)
		}
	}
	says("1 1 hunter2", "echo $(cat /config/k) $(cat /one/key) $(cat /secret/password)")
	says("token-1/p/vault ns", "cd /var/run/secrets/kubernetes.io/serviceaccount; echo $(cat token) $(cat namespace)")
	says("refused", "for f in /config/x /secret/x /var/run/secrets/kubernetes.io/serviceaccount/x; do touch $f 2>/dev/null && echo written; done; echo refused")
	says("kept", "echo kept > /mine/f; echo kept > /ram/f; cat /mine/f")
	expectFile(t, "kept\n", m.volumeDir(pod.UID, "emptyDir", "scratch"), "of/me/f")

	s.change(func() { s.configMaps["m"] = map[string]string{"k": "2"}; s.token = "token-2" })
	m.refresh(t.Context(), m.pods[pod.UID])
	says("2 1", "echo $(cat /config/k) $(cat /one/key)")
	says("token-2/p/vault", "cat /var/run/secrets/kubernetes.io/serviceaccount/token")

	endContainers(t, client, sandboxID)
	must(t, m.RemovePodDir(t.Context(), pod.UID))
	if _, err := os.Stat(m.podDir(pod.UID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pod's directory: %v", err)
	}
}

func endContainers(t *testing.T, client *cri.Client, sandboxID string) {
	t.Helper()
	must(t, client.StopPodSandbox(t.Context(), sandboxID), client.RemovePodSandbox(t.Context(), sandboxID))
}

// BenchmarkMount is the part of a pod's start that this room takes: the token
// volume of an ordinary pod and an emptyDir, set up and removed.
func BenchmarkMount(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("mounting needs root")
	}
	m, err := NewManager(configFor(b.TempDir(), newStore()))
	if err != nil {
		b.Fatal(err)
	}
	pod := podWith(tokenVolume(), emptyDirVolume("scratch", ""))
	for b.Loop() {
		if err := m.Mount(b.Context(), pod); err != nil {
			b.Fatal(err)
		}
		if err := m.RemovePodDir(b.Context(), pod.UID); err != nil {
			b.Fatal(err)
		}
	}
}
