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

// says tells whether a line of the pod's log equals text.
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

// A pod waits for the config map that it mounts, starts when it exists, and
// sees changes of its own labels while it runs, even after a restart of the
// kubelet.
func TestVolumesFollowTheAPI(t *testing.T) {
	b := newBed(t)
	pod := shellPod("mounts",
		`echo "config is $(cat /config/k)"; until grep -q db /info/labels; do sleep 0.1; done; echo "label is new"; until grep -q cache /info/labels; do sleep 0.1; done; echo "label is newer"; `+forever)
	pod.Labels = map[string]string{"app": "web"}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
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
	// After a restart, the kubelet must know the volumes of running pods.
	b.stop()
	b.start()
	label("cache")
	b.eventually("a newer label in its volume", func() bool { return b.says("mounts", "label is newer") })
	b.delete("mounts")
	b.api.wait("mounts to be gone", func() bool { return b.api.pod("mounts") == nil })
	b.waitEmpty()
}

// A pod waits until its claim has a volume, writes what the next pod reads, and
// its usage is reported.
func TestClaimedVolumes(t *testing.T) {
	b := newBed(t)
	source := filepath.Join(b.containerd.Dir, "volume") // outlives its pods
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
	claim.APIVersion, claim.Kind, claim.Spec.VolumeName = "v1", "PersistentVolumeClaim", "disk"
	if err := b.client.Resource(core.PersistentVolumeClaims, "default").Create(t.Context(), claim, claim); err != nil {
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}
	volume.APIVersion, volume.Kind = "v1", "PersistentVolume"
	volume.Spec.Local, volume.Spec.ClaimRef = &corev1.LocalVolumeSource{Path: source}, &corev1.ObjectReference{UID: claim.UID}
	if err := b.client.Resource(core.PersistentVolumes, "").Create(t.Context(), volume, nil); err != nil {
		t.Fatal(err)
	}
	group := int64(1234)
	withClaim := func(name, script string) *core.Pod {
		pod := shellPod(name, script+forever)
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &group}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/data", SubPath: "sub"}}
		return pod
	}
	b.create(withClaim("writes", "echo kept >/data/file; "))
	b.waitEvent("writes", "FailedMount", "error processing PVC default/data: PVC is not bound")
	if err := b.client.Resource(core.PersistentVolumeClaims, "default").Patch(t.Context(), "data", types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`),
		nil); err != nil {
		t.Fatal(err)
	}
	b.waitPhase("writes", corev1.PodRunning)
	b.stop() // the next kubelet has to find the mounts
	b.start()
	for _, want := range []string{
		`kubelet_volume_stats_capacity_bytes{namespace="default",persistentvolumeclaim="data"} `,
		`volume_manager_total_volumes{plugin_name="kubernetes.io/local-volume",state="actual_state_of_world"} 1`,
	} {
		b.eventually(want, func() bool {
			return slices.ContainsFunc(told(t, b.kubelet.registry), func(line string) bool { return strings.HasPrefix(line, want) })
		})
	}
	b.delete("writes")
	b.api.wait("the pod to be gone", func() bool { return b.api.pod("writes") == nil })
	b.create(withClaim("reads", `echo "it says $(cat /data/file), of $(stat -c %g /data/file)"; `))
	b.waitPhase("reads", corev1.PodRunning)
	b.eventually("what the first pod wrote", func() bool { return b.says("reads", "it says kept, of 1234") })
	b.delete("reads")
	b.api.wait("the pod to be gone", func() bool { return b.api.pod("reads") == nil })
	b.waitEmpty()
	if kept, err := os.ReadFile(filepath.Join(source, "sub", "file")); err != nil || string(kept) != "kept\n" {
		t.Errorf("what is left: %q, %v", kept, err)
	}
}

// What an init container wrote becomes an environment variable of later
// containers.
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

// A pod whose volumes can't be removed says why, and is gone when they can be.
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
