package kubelet

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// says tells whether a line of the pod's log is text.
func (b *bed) says(pod, text string) bool {
	files, _ := filepath.Glob(filepath.Join(b.config.PodLogsDir, "default_"+pod+"_*", "main", "*.log"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && slices.ContainsFunc(strings.Split(string(content), "\n"), func(line string) bool {
			return strings.HasSuffix(line, " F "+text)
		}) {
			return true
		}
	}
	return false
}

// A pod waits for the config map that it mounts, starts when it comes, and sees
// its own labels change while it runs, by whichever kubelet.
func TestVolumesFollowTheAPI(t *testing.T) {
	b := newBed(t)
	pod := shellPod("mounts", `echo "config is $(cat /config/k)"; until grep -q db /info/labels; do sleep 0.1; done; echo "label is new"; until grep -q cache /info/labels; do sleep 0.1; done; echo "label is newer"; `+forever)
	pod.Labels = map[string]string{"app": "web"}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
		{Name: "info", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		}}}},
		{Name: "ram", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "config", MountPath: "/config"}, {Name: "info", MountPath: "/info"}, {Name: "ram", MountPath: "/ram", SubPath: "a/b"},
	}
	b.create(pod)
	b.api.wait("FailedMount", func() bool {
		var events corev1.EventList
		if err := b.client.Resource(core.Events, "default").List(t.Context(), &events); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e core.Event) bool { return e.Reason == "FailedMount" })
	})
	settings := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"k": "one"}}
	settings.APIVersion, settings.Kind = "v1", "ConfigMap"
	if err := b.client.Resource(core.ConfigMaps, "default").Create(t.Context(), settings, nil); err != nil {
		t.Fatal(err)
	}
	b.waitPhase("mounts", corev1.PodRunning)
	b.eventually("the config map's content", func() bool { return b.says("mounts", "config is one") })
	label := func(value string) {
		patch := []byte(`{"metadata":{"labels":{"app":"` + value + `"}}}`)
		if err := b.client.Resource(core.Pods, "default").Patch(t.Context(), "mounts", types.MergePatchType, patch, nil); err != nil {
			t.Fatal(err)
		}
	}
	label("db")
	b.eventually("the pod's new label in its volume", func() bool { return b.says("mounts", "label is new") })
	// A kubelet that comes back must know the volumes of what runs.
	b.stop()
	b.start()
	label("cache")
	b.eventually("a newer label in its volume", func() bool { return b.says("mounts", "label is newer") })
	b.delete("mounts")
	b.api.wait("mounts to be gone", func() bool { return b.api.pod("mounts") == nil })
	b.waitEmpty()
}

// What an init container wrote becomes a variable of the next ones.
func TestVariablesComeFromFiles(t *testing.T) {
	b := newBed(t)
	pod := shellPod("reads", `echo "it says $WORD"; `+forever)
	pod.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	writer := *pod.Spec.Containers[0].DeepCopy()
	writer.Name, writer.Command = "writer", []string{"/bin/sh", "-c", `echo "WORD='hello'" >/shared/env`}
	writer.VolumeMounts = []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
	pod.Spec.InitContainers = []core.Container{writer}
	fileKey := func(key string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "WORD", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "shared", Path: "env", Key: key}}}}
	}
	pod.Spec.Containers[0].Env = fileKey("WORD")
	b.create(pod)
	b.waitPhase("reads", corev1.PodRunning)
	b.eventually("the variable", func() bool { return b.says("reads", "it says hello") })

	missing := pod.DeepCopy()
	missing.ObjectMeta = metav1.ObjectMeta{Name: "waits", Namespace: "default"}
	missing.Spec.Containers[0].Env = fileKey("OTHER")
	b.create(missing)
	b.api.wait("CreateContainerConfigError", func() bool {
		pod := b.api.pod("waits")
		return pod != nil && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	for _, name := range []string{"reads", "waits"} {
		b.delete(name)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
	b.waitEmpty()
}

// A pod whose volumes can't be removed says why, and is gone once they can be.
func TestVolumesThatCantBeRemoved(t *testing.T) {
	b := newBed(t)
	pod := shellPod("writes", "echo hello > /scratch/file; "+forever)
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	b.create(pod)
	b.waitPhase("writes", corev1.PodRunning)
	pods := filepath.Join(b.config.RootDir, "pods")
	if err := errors.Join(unix.Mount(pods, pods, "", unix.MS_BIND, ""), unix.Mount("", pods, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")); err != nil {
		t.Fatal(err)
	}
	b.delete("writes")
	b.waitEvent("writes", "FailedUnMount", "read-only file system")
	if err := unix.Unmount(pods, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	b.api.wait("the pod to be gone", func() bool { return b.api.pod("writes") == nil })
	b.waitEmpty()
}
