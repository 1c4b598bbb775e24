package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/simulated"
	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// waitEvent waits for an event about the pod with this reason and text.
func (b *bed) waitEvent(pod, reason, text string) {
	b.t.Helper()
	b.api.wait(fmt.Sprintf("event %s of %s: …%s…", reason, pod, text), func() bool {
		var events corev1.EventList
		if err := b.client.Resource(core.Events, "default").List(b.t.Context(), &events); err != nil {
			b.t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e core.Event) bool {
			return e.InvolvedObject.Name == pod && e.Reason == reason && strings.Contains(e.Message, text)
		})
	})
}

// restarts is the first container's restart count.
func restarts(s *core.PodStatus) int32 {
	if len(s.ContainerStatuses) == 0 {
		return 0
	}
	return s.ContainerStatuses[0].RestartCount
}

// A fork bomb meets its pod's process limit: the pod reports it, other pods
// don't notice, and deleting the pod ends all of it.
func TestAForkBombStaysInItsPod(t *testing.T) {
	b := newBed(t, func(c *config.Config) { c.PodPidsLimit = 40 })
	bomb := shellPod("bomb", `while :; do sleep 1000 & done`)
	bomb.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	b.create(bomb)
	b.api.wait("the bomb to go off", func() bool {
		pod := b.api.pod("bomb")
		if restarts(&pod.Status) == 0 {
			return false
		}
		ended := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
		return ended != nil && ended.ExitCode != 0 && strings.Contains(ended.Message, "can't fork")
	})
	// Its processes ignore SIGTERM, so it does not end by itself.
	b.create(shellPod("stubborn", `trap '' TERM; while :; do (trap '' TERM; sleep 1000) & sleep 0.01 || wait; done`))
	b.waitPhase("stubborn", corev1.PodRunning)
	b.create(shellPod("neighbour", forever))
	b.waitPhase("neighbour", corev1.PodRunning)
	b.deleteWithin("stubborn", 1)
	b.api.wait("stubborn to be gone", func() bool { return b.api.pod("stubborn") == nil })
	if pod := b.api.pod("neighbour"); pod.Status.Phase != corev1.PodRunning || restarts(&pod.Status) != 0 {
		t.Errorf("the neighbour is %s, restarted %d times", pod.Status.Phase, restarts(&pod.Status))
	}
}

// fill calls write until there is no room left.
func fill(t *testing.T, write func(i int) error) {
	t.Helper()
	for i := 0; ; i++ {
		if err := write(i); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// saysNoRoom is true if the pod's one container waits for room on the disk.
func saysNoRoom(pod *core.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
		strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Message, "no space left on device")
}

// On a full disk, new pods wait and say why, running ones keep complete files,
// and everything goes on by itself when there is room.
func TestAFullDisk(t *testing.T) {
	if !long() {
		t.Skip("skipped: waits for the kubelet's back-offs; set KCTL_LONG=1")
	}
	b := newBed(t, func(c *config.Config) {
		if err := errors.Join(os.Mkdir(c.RootDir, 0o755), syscall.Mount("tmpfs", c.RootDir, "tmpfs", 0, "size=1m,nr_inodes=400")); err != nil {
			t.Fatal(err)
		}
	})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "info"}, Data: map[string]string{"state": "old"}}
	if err := b.client.Resource(core.ConfigMaps, "default").Create(t.Context(), settings, nil); err != nil {
		t.Fatal(err)
	}
	info := corev1.Volume{Name: "info", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "info"},
	}}}
	withInfo := func(name string) *core.Pod {
		pod := shellPod(name, forever)
		pod.Spec.Volumes = []corev1.Volume{info, {Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "info", MountPath: "/info"}, {Name: "scratch", MountPath: "/scratch"}}
		return pod
	}
	b.create(withInfo("before"))
	before := b.waitPhase("before", corev1.PodRunning)
	volume := filepath.Join(b.config.RootDir, "pods", string(before.UID), "volumes", "kubernetes.io~configmap", "info")
	state := func() string {
		content, err := os.ReadFile(filepath.Join(volume, "state"))
		if err != nil {
			t.Error(err)
		}
		return string(content)
	}
	stuff := filepath.Join(b.config.RootDir, "stuff")
	if err := os.Mkdir(stuff, 0o700); err != nil {
		t.Fatal(err)
	}
	granted := filepath.Join(b.config.RootDir, "allocated_pods_state")
	b.eventually("the pod to be recorded", func() bool {
		record, _ := os.ReadFile(granted)
		return strings.Contains(string(record), string(before.UID))
	})
	fill(t, func(i int) error {
		return os.WriteFile(filepath.Join(stuff, fmt.Sprint(i%100)), make([]byte, (i/100+1)*4096), 0o600)
	})

	// Whatever comes first changes what pods are granted. The record can't be written, is taken away, and leaves
	// room that the next pod's volume would find.
	b.create(shellPod("first", forever))
	b.eventually("the record that can't be changed to be taken away", func() bool {
		_, err := os.Stat(granted)
		return errors.Is(err, fs.ErrNotExist)
	})
	b.api.wait("first to run in that room, or to say why not", func() bool {
		pod := b.api.pod("first")
		return pod.Status.Phase == corev1.PodRunning || saysNoRoom(pod)
	})
	fill(t, func(i int) error { // the room that it had
		return os.WriteFile(filepath.Join(stuff, fmt.Sprint("more-", i)), make([]byte, 4096), 0o600)
	})
	b.create(withInfo("later"))
	b.waitEvent("later", "FailedMount", "no space left on device")
	b.create(shellPod("plain", forever)) // there is no room for its hosts file
	b.api.wait("plain to say why it does not run", func() bool { return saysNoRoom(b.api.pod("plain")) })
	patch := []byte(`{"data":{"state":"new"}}`)
	if err := b.client.Resource(core.ConfigMaps, "default").Patch(t.Context(), "info", types.MergePatchType, patch, nil); err != nil {
		t.Fatal(err)
	}
	b.waitEvent("before", "FailedMount", "no space left on device")
	if got := state(); got != "old" {
		t.Errorf("the running pod sees %q", got)
	}
	if phase := b.phase("later"); phase != corev1.PodPending {
		t.Errorf("the pod that waits for room is %s", phase)
	}
	clear := func() {
		if err := os.RemoveAll(stuff); err != nil {
			t.Fatal(err)
		}
	}
	clear()
	b.waitPhase("first", corev1.PodRunning)
	b.waitPhase("later", corev1.PodRunning)
	b.waitPhase("plain", corev1.PodRunning)
	b.eventually("the new state", func() bool { return state() == "new" })
	if entries, err := os.ReadDir(volume); err != nil || len(entries) != 3 { // a version, the link to it, state
		t.Errorf("something half-written is left: %v, %v", entries, err)
	}
	if after := b.api.pod("before"); restarts(&after.Status) != 0 || after.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod from before is %s, restarted %d times", after.Status.Phase, restarts(&after.Status))
	}

	// Not even a directory can be created any more.
	if err := os.Mkdir(stuff, 0o700); err != nil {
		t.Fatal(err)
	}
	fill(t, func(i int) error { return os.WriteFile(filepath.Join(stuff, fmt.Sprint(i)), nil, 0o600) })
	b.create(shellPod("last", forever))
	b.waitEvent("last", "Failed", "error making pod data directories")
	clear()
	b.waitPhase("last", corev1.PodRunning)
}

// After a reboot, sandboxes, control groups and mounts are gone. Pods are
// restarted by their policy, in a new sandbox, and those that had ended stay
// ended.
func TestAReboot(t *testing.T) {
	b := newBed(t)
	for name, policy := range map[string]corev1.RestartPolicy{
		"always": corev1.RestartPolicyAlways, "failing": corev1.RestartPolicyOnFailure, "never": corev1.RestartPolicyNever, "done": corev1.RestartPolicyNever,
	} {
		pod := shellPod(name, "echo x >> /memory/x; echo $(cat /memory/x | wc -l) times; "+forever)
		if name == "done" {
			pod = shellPod(name, "exit 0")
		}
		pod.Spec.RestartPolicy = policy
		pod.Spec.Volumes = []corev1.Volume{{Name: "memory",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/memory"}}
		b.create(pod)
	}
	for name, phase := range map[string]corev1.PodPhase{"always": corev1.PodRunning, "failing": corev1.PodRunning, "never": corev1.PodRunning,
		"done": corev1.PodSucceeded} {
		b.waitPhase(name, phase)
	}
	b.stop()
	if err := mount.UnmountBelow(b.config.RootDir); err != nil {
		t.Fatal(err)
	}
	b.containerd.Reboot(t)
	b.removeGroups()
	b.start()
	for _, name := range []string{"always", "failing"} {
		b.api.wait(name+" to run again", func() bool {
			status := b.api.pod(name).Status
			return restarts(&status) == 1 && status.ContainerStatuses[0].State.Running != nil
		})
		b.eventually(name+" to have its memory anew", func() bool { return b.says(name, "1 times") && !b.says(name, "2 times") })
	}
	if failed := b.waitPhase("never", corev1.PodFailed); restarts(&failed.Status) != 0 {
		t.Errorf("a pod that is never restarted was, %d times", restarts(&failed.Status))
	}
	if phase := b.phase("done"); phase != corev1.PodSucceeded {
		t.Errorf("the pod that had ended is %s", phase)
	}
	b.checkSandboxes(map[string]uint32{"always": 1, "failing": 1})
}

// checkSandboxes compares the ready sandboxes with the expected attempts.
func (b *bed) checkSandboxes(want map[string]uint32) {
	b.t.Helper()
	sandboxes, err := b.containerd.Client().ListPodSandbox(b.t.Context(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	ready := map[string]int{}
	for _, s := range sandboxes {
		if name := s.GetMetadata().GetName(); s.GetState() == 0 {
			ready[name]++
			if attempt, known := want[name]; !known || attempt != s.GetMetadata().GetAttempt() {
				b.t.Errorf("pod %s has sandbox attempt %d", name, s.GetMetadata().GetAttempt())
			}
		}
	}
	for name := range want {
		if ready[name] != 1 {
			b.t.Errorf("pod %s has %d sandboxes", name, ready[name])
		}
	}
}

// While the API server is away, pods go on, crashed containers are restarted,
// and probes act; afterwards the API is told.
func TestTheAPIIsAwayForLong(t *testing.T) {
	b := newBed(t, func(c *config.Config) { c.MaxContainerRestartPeriod = time.Second })
	sick := shellPod("sick", forever)
	sick.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "! test -f /dead"}}},
		PeriodSeconds: 1, TimeoutSeconds: 60, SuccessThreshold: 1, FailureThreshold: 1,
	}
	b.create(sick)
	b.create(shellPod("well", forever))
	settings := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"code": "3"}}
	if err := b.client.Resource(core.ConfigMaps, "default").Create(t.Context(), settings, nil); err != nil {
		t.Fatal(err)
	}
	crashes := shellPod("crash", "sleep 0.2; exit $code")
	crashes.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: new(true)}},
	}
	b.create(crashes)
	for _, name := range []string{"sick", "well"} {
		b.waitPhase(name, corev1.PodRunning)
	}
	for _, of := range []string{"configmaps", "secrets"} {
		b.eventually("a watch of "+of, func() bool { return b.api.wasRead("watch /api/v1/namespaces/default/" + of) })
	}
	b.api.setAway(true)
	well, crash, ill := b.api.pod("well"), b.api.pod("crash"), b.api.pod("sick")
	id := strings.TrimPrefix(ill.Status.ContainerStatuses[0].ContainerID, "containerd://")
	if _, err := b.containerd.Client().ExecSync(t.Context(), id, []string{"/bin/touch", "/dead"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []*core.Pod{crash, ill} {
		want := restarts(&pod.Status) + 2
		if pod == ill {
			want = 1
		}
		b.eventually(pod.Name+" to be restarted without the API", func() bool {
			status, _ := b.kubelet.statuses.Get(pod.UID)
			return restarts(&status) >= want
		})
	}
	heard := b.api.pod("crash")
	if restarts(&heard.Status) != restarts(&crash.Status) {
		t.Error("the API was not away")
	}
	known, _ := b.kubelet.statuses.Get(crash.UID)
	b.api.setAway(false)
	b.api.wait("the API to hear of restarts", func() bool {
		c, s := b.api.pod("crash").Status, b.api.pod("sick").Status
		return restarts(&c) >= restarts(&known) && restarts(&s) == 1
	})
	if after := b.api.pod("well"); after.Status.ContainerStatuses[0].ContainerID != well.Status.ContainerStatuses[0].ContainerID {
		t.Error("a pod that was well was touched")
	}
}

// An API server that comes back is not overrun: reporting what happened
// meanwhile takes a few requests per pod.
func TestAnAPIThatComesBackIsNotOverrun(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	const pods = 20
	for i := range pods {
		b.create(hollowPod(fmt.Sprintf("ends-%d", i), map[string]string{simulated.ExitAfter: "3s"}))
		b.create(hollowPod(fmt.Sprintf("stays-%d", i), nil))
	}
	for i := range pods {
		b.waitPhase(fmt.Sprintf("stays-%d", i), corev1.PodRunning)
	}
	b.api.setAway(true)
	for i := range pods {
		uid := b.api.pod(fmt.Sprintf("ends-%d", i)).UID
		b.eventually("all to end", func() bool {
			status, _ := b.kubelet.statuses.Get(uid)
			return status.Phase == corev1.PodSucceeded
		})
	}
	b.api.setAway(false)
	for i := range pods {
		b.waitPhase(fmt.Sprintf("ends-%d", i), corev1.PodSucceeded)
	}
	if n := b.api.sinceAway(); n > 10*pods {
		t.Errorf("%d requests for %d pods that ended", n, pods)
	} else {
		t.Logf("%d requests for %d pods that ended", n, pods)
	}
}

func TestANodeThatCantGivePodsItsSearchPaths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("search"+strings.Repeat(" a.test", 30)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, func(c *config.Config) { c.ResolvConf = path })
	b.waitEvent("node-1", "CheckLimitsForResolvConf", "more than 29 domains")
}
