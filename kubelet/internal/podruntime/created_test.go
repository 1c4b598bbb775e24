package podruntime

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimestate"
)

// A kubelet killed between CreateContainer and StartContainer leaves a
// container that never ran; the pod must still run once.
func TestContainerThatNeverStartedIsReplaced(t *testing.T) {
	b := newBed(t)
	pod := newPod("half", shell("main", forever))
	s := &podSync{Manager: b.Manager, ctx: t.Context(), pod: pod, status: &runtimestate.PodStatus{UID: pod.UID}, ips: known([]string(nil))}
	if err := s.configureSandbox(podactions.Actions{CreateSandbox: true}); err != nil {
		t.Fatal(err)
	}
	id, err := s.createSandbox()
	if err != nil {
		t.Fatal(err)
	}
	s.beside = t.Context()
	present, err := s.ensureImage(podactions.Start{Kind: podactions.Regular})
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.containerConfig(&containerStart{spec: &pod.Spec.Containers[0], image: present})
	if err != nil {
		t.Fatal(err)
	}
	created, err := b.containerd.Client().CreateContainer(t.Context(), id, config, s.config)
	if err != nil {
		t.Fatal(err)
	}
	r := b.sync(t, pod, SyncOptions{})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	main := b.status(t, pod).Container("main")
	if main.State != runtimestate.StateRunning || main.RestartCount != 0 || main.ID.ID == created || len(b.status(t, pod).Containers) != 1 {
		t.Errorf("%s", show(b.status(t, pod)))
	}
	if r.Status.ContainerByID(b.ContainerID(created)) != nil {
		t.Error("SyncPod still tells of the container that it removed")
	}
}

// A container that was created and could not be started has its name in use: the next sync knows of it, and
// so does one that finds the name taken, as when a creation was done and not answered.
func TestCreatedContainersAreKnown(t *testing.T) {
	b := newBed(t)
	pod := newPod("half", shell("main", forever))
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}}}
	if r := b.sync(t, pod, SyncOptions{}); r.Waiting["main"].Reason != runtimestate.ReasonCreateContainerConfig {
		t.Fatalf("%+v", r)
	}
	onlySandbox := b.status(t, pod)
	pod.Spec.Containers[0].EnvFrom = nil

	full := filepath.Dir(podfiles.HostsFile(b.Configs.RootDir, pod.UID))
	if err := errors.Join(os.MkdirAll(full, 0o750), syscall.Mount("tmpfs", full, "tmpfs", 0, "size=4k")); err != nil {
		t.Fatal(err)
	}
	unmount := sync.OnceFunc(func() { _ = syscall.Unmount(full, syscall.MNT_DETACH) })
	t.Cleanup(unmount)
	stuff := filepath.Join(full, "stuff")
	if err := os.WriteFile(stuff, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{runtimestate.ReasonRunContainer, runtimestate.ReasonCreateContainer} {
		r := b.SyncPod(t.Context(), pod, onlySandbox, SyncOptions{})
		if created := r.Status.Container("main"); r.Waiting["main"].Reason != reason || created == nil || created.State != runtimestate.StateCreated {
			t.Fatalf("want %s: %+v\n%s", reason, r, show(r.Status))
		}
		if reason == runtimestate.ReasonCreateContainer {
			if err := os.Remove(stuff); err != nil {
				t.Fatal(err)
			}
			if r = b.SyncPod(t.Context(), pod, r.Status, SyncOptions{}); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	if now := b.status(t, pod); len(now.Containers) != 1 || len(now.Running()) != 1 {
		t.Error(show(now))
	}
}
