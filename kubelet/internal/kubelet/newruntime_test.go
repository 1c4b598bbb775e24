package kubelet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/cri/critest"
	"kctl/kubelet/internal/noderuntime"
	"kctl/proto/core"
)

// usersOf are a pod's host ids, as recorded in its file.
func (b *bed) usersOf(pod *core.Pod) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.config.RootDir, "pods", string(pod.UID), "userns"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

func withUsersOfItsOwn(name, script string) *core.Pod {
	pod := shellPod(name, script)
	no := false
	pod.Spec.HostUsers = &no
	return pod
}

// Files in every kind of volume have the same owners in the pod as without a
// user namespace, and the pod's ids belong to it alone as long as it lives.
func TestUserNamespaces(t *testing.T) {
	b := newBed(t)
	b.containerd.Only(t, 2, 0)
	if handlers := (noderuntime.Runtime{Health: b.kubelet.health}).Features().Handlers; !slices.ContainsFunc(handlers, func(h corev1.NodeRuntimeHandler) bool {
		return h.Name == "" && h.Features != nil && h.Features.UserNamespaces != nil && *h.Features.UserNamespaces
	}) {
		t.Skipf("the container runtime says that it has no user namespaces on this machine: %v", handlers)
	}
	settings := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"k": "one"}}
	settings.APIVersion, settings.Kind = "v1", "ConfigMap"
	if err := b.client.Resource(core.ConfigMaps, "default").Create(t.Context(), settings, nil); err != nil {
		t.Fatal(err)
	}
	group, private := int64(2000), int32(0o400)
	pod := withUsersOfItsOwn("mapped", `cat /config/k; echo; stat -c '%u:%g %n' -L /config/k /info/name /disk /ram /part /host; `+
		`touch /disk/new /ram/new /host/new /part/new; stat -c '%u:%g %n' /disk/new /ram/new /host/new /part/new; `+forever)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, DefaultMode: &private,
			}}},
		{Name: "info", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "name",
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		}}}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "ram", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}}},
	}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "config", MountPath: "/config"}, {Name: "info", MountPath: "/info"}, {Name: "disk", MountPath: "/disk"},
		{Name: "ram", MountPath: "/ram"}, {Name: "disk", MountPath: "/part", SubPath: "a/b"}, {Name: "host", MountPath: "/host"},
	}
	b.create(pod)
	other := withUsersOfItsOwn("other", forever)
	b.create(other)
	running, beside := b.waitPhase("mapped", corev1.PodRunning), b.waitPhase("other", corev1.PodRunning)
	for _, line := range []string{
		"one", "0:2000 /config/k", "0:2000 /info/name", "0:2000 /disk", "0:2000 /ram", "0:2000 /part", "0:0 /host",
		"0:2000 /disk/new", "0:2000 /ram/new", "0:0 /host/new", "0:2000 /part/new",
	} {
		b.eventually(line, func() bool { return b.says("mapped", line) })
	}
	users := b.usersOf(running)
	if users == b.usersOf(beside) {
		t.Errorf("both pods have the users %s", users)
	}

	b.stop()
	b.start()
	third := withUsersOfItsOwn("third", forever)
	b.create(third)
	after := b.usersOf(b.waitPhase("third", corev1.PodRunning))
	if after == users || after == b.usersOf(beside) || b.usersOf(running) != users {
		t.Errorf("after a restart the third pod has %s, the first %s, which was %s", after, b.usersOf(running), users)
	}
	for _, name := range []string{"mapped", "other", "third"} {
		b.delete(name)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
	b.waitEmpty()
	if left, err := filepath.Glob(filepath.Join(b.config.RootDir, "pods", "*", "userns")); err != nil || len(left) > 0 {
		t.Errorf("ids that were not given back: %v, %v", left, err)
	}
}

// A runtime that can mount images does so; with one that can't, the pod fails
// at once, and the message names the runtime.
func TestImageVolumes(t *testing.T) {
	b := newBed(t, func(c *config.Config) { c.Images.MinimumAge = 0 }) // else no image is old enough to be removed
	registry := critest.NewRegistry(t)
	reference := registry.Push(t, "data:1", critest.Image{Files: map[string]string{"model/weights": "heavy\n"}})
	pod := shellPod("models", "cat /data/weights; "+forever)
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
		Reference: reference, PullPolicy: corev1.PullAlways,
	}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "model"}}
	b.create(pod)
	if old := b.kubelet.health.CheckImageVolumes(pod); old != nil {
		failed := b.waitPhase("models", corev1.PodFailed)
		if failed.Status.Reason != "UnsupportedPodFeature" || !strings.Contains(failed.Status.Message, old.Error()) {
			t.Errorf("with an old runtime: %s: %s", failed.Status.Reason, failed.Status.Message)
		}
		return
	}
	b.waitPhase("models", corev1.PodRunning)
	b.eventually("the image's file", func() bool { return b.says("models", "heavy") })
	b.eventually("the runtime's events", b.kubelet.pleg.Streaming)
	if err := b.kubelet.machinery.images.FreeAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	none := shellPod("none", forever)
	none.Spec.Volumes, none.Spec.Containers[0].VolumeMounts = pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts
	none.Spec.Volumes[0].Image = &corev1.ImageVolumeSource{Reference: registry.Reference("none:1"), PullPolicy: corev1.PullIfNotPresent}
	b.create(none)
	b.api.wait("none to wait for its image", func() bool {
		pod := b.api.pod("none")
		if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			return false
		}
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		return waiting != nil && waiting.Reason == "ImagePullBackOff" && strings.Contains(waiting.Message, "none:1")
	})
	for _, name := range []string{"models", "none"} {
		b.delete(name)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
	b.waitEmpty()
}
