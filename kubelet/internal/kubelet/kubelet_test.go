package kubelet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri/critest"
	"kctl/proto/core"
	"kctl/proto/relay"
)

func TestPodsLiveAndEnd(t *testing.T) {
	b := newBed(t)
	b.api.wait("the node", func() bool { return b.api.object("/api/v1/nodes/node-1", &core.Node{}) })

	b.create(shellPod("web", "echo hello; "+forever))
	pod := b.waitPhase("web", corev1.PodRunning)
	if pod.Status.PodIP == "" || pod.Status.HostIP != "127.0.0.1" || !pod.Status.ContainerStatuses[0].Ready || pod.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("status %+v", pod.Status)
	}
	b.checkStamps(
		relay.KubeletSeen, relay.KubeletAdmitted, relay.KubeletWorker, relay.KubeletCgroupCreated, relay.KubeletVolumesReady,
		relay.KubeletSandboxCreated,
		relay.KubeletImagePulled.Of("main"), relay.KubeletCreated.Of("main"), relay.KubeletStarted.Of("main"), relay.KubeletRunning, relay.KubeletReady,
	)
	logs, err := filepath.Glob(filepath.Join(b.config.PodLogsDir, "default_web_"+string(pod.UID), "main", "0.log"))
	if err != nil || len(logs) != 1 {
		t.Errorf("logs %v, %v", logs, err)
	}

	job := shellPod("job", "exit 3")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	b.create(job)
	failed := b.waitPhase("job", corev1.PodFailed)
	if ended := failed.Status.ContainerStatuses[0].State.Terminated; ended == nil || ended.ExitCode != 3 || ended.Reason != "Error" {
		t.Errorf("state %+v", failed.Status.ContainerStatuses[0].State)
	}

	big := shellPod("big", forever)
	big.Spec.NodeSelector = map[string]string{"no": "such"}
	b.create(big)
	if rejected := b.waitPhase("big", corev1.PodFailed); rejected.Status.Reason != "NodeAffinity" {
		t.Errorf("reason %q", rejected.Status.Reason)
	}

	b.api.forgetStamps() // the job has ended, too
	b.delete("web")
	b.api.wait("web to be gone", func() bool { return b.api.pod("web") == nil })
	b.checkStamps(relay.KubeletStopping, relay.KubeletStopped)
	b.delete("job")
	b.api.wait("job to be gone", func() bool { return b.api.pod("job") == nil })
	b.waitEmpty()
}

// patience is how long a test waits on a busy machine.
const patience = 3 * time.Minute

func TestCrashingContainerBacksOff(t *testing.T) {
	b := newBed(t)
	b.create(shellPod("crash", "exit 1"))
	b.api.wait("CrashLoopBackOff", func() bool {
		pod := b.api.pod("crash")
		if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			return false
		}
		s := pod.Status.ContainerStatuses[0]
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && s.LastTerminationState.Terminated != nil &&
			s.LastTerminationState.Terminated.ExitCode == 1
	})
	b.lastEndIsTold("crash")
	missing := shellPod("missing", forever)
	missing.Spec.Containers[0].Image = "127.0.0.1:1/no/such:image"
	b.create(missing)
	b.api.wait("ErrImagePull", func() bool {
		pod := b.api.pod("missing")
		return pod != nil && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			strings.Contains(pod.Status.ContainerStatuses[0].State.Waiting.Reason, "ImagePull")
	})
	t.Run("all containers anew", b.beginsAnew)
}

// lastEndIsTold ends a pod that waits for a restart: its last termination state
// stays to the end, whatever was cleaned up meanwhile.
func (b *bed) lastEndIsTold(name string) {
	b.t.Helper()
	if err := b.kubelet.collector.Collect(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.delete(name)
	s := b.api.deleted(name).Status.ContainerStatuses[0]
	if last := s.LastTerminationState.Terminated; s.RestartCount == 0 || s.State.Terminated == nil || last == nil || last.ContainerID == s.ContainerID {
		b.t.Errorf("the last status: %+v", s)
	}
}

func TestProbesDecide(t *testing.T) {
	b := newBed(t)
	exec := func(command string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", command}}},
			PeriodSeconds: 1, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 1,
		}
	}
	pod := shellPod("probed", "sleep 1 & wait; touch /ready; "+forever)
	pod.Spec.Containers[0].ReadinessProbe = exec("test -f /ready")
	pod.Spec.Containers[0].LivenessProbe = exec("! test -f /dead")
	b.create(pod)
	b.waitPhase("probed", corev1.PodRunning)
	ready := func() bool {
		s := b.api.pod("probed").Status.ContainerStatuses
		return len(s) == 1 && s[0].Ready
	}
	b.api.wait("readiness", ready)
	id := strings.TrimPrefix(b.api.pod("probed").Status.ContainerStatuses[0].ContainerID, "containerd://")
	if _, err := b.containerd.Client().ExecSync(t.Context(), id, []string{"/bin/touch", "/dead"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	b.api.wait("a restart", func() bool {
		s := b.api.pod("probed").Status.ContainerStatuses
		return s[0].RestartCount == 1 && s[0].State.Running != nil && s[0].LastTerminationState.Terminated != nil
	})
	b.api.wait("readiness again", ready)
}

func TestAKubeletThatComesBackTakesOver(t *testing.T) {
	b := newBed(t)
	b.create(shellPod("stays", forever))
	b.create(shellPod("goes", forever))
	before := b.waitPhase("stays", corev1.PodRunning)
	b.waitPhase("goes", corev1.PodRunning)
	b.stop()
	b.delete("goes")
	b.create(shellPod("comes", forever))
	b.start()
	b.waitPhase("comes", corev1.PodRunning)
	b.api.wait("the pod deleted meanwhile to be gone", func() bool { return b.api.pod("goes") == nil })
	after := b.api.pod("stays")
	if a, c := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != c.ContainerID || c.RestartCount != 0 ||
		c.State.Running == nil {
		t.Errorf("the container was touched: %+v, before %+v", c, a)
	}
}

// A manifest that is a copy of a pod of the API does not end that pod either if it is there when
// the kubelet starts, and is read before the API is heard.
func TestAKubeletThatComesBackToACopyOfAPod(t *testing.T) {
	b := newBed(t)
	b.create(shellPod("web", forever))
	before := b.waitPhase("web", corev1.PodRunning)
	b.stop()
	copied, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"copy.json": copied, "static.json": []byte(staticManifest)} {
		if err := os.WriteFile(filepath.Join(b.config.Sources.StaticPodPath, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.api.setAway(true)
	b.start()
	b.eventually("the other manifest to run", func() bool {
		static, ok := b.kubelet.pods.ByName("default", "static-node-1")
		if !ok {
			return false
		}
		status, _ := b.kubelet.statuses.Get(static.UID)
		return status.Phase == corev1.PodRunning
	})
	b.api.setAway(false)
	b.api.wait("the mirror", func() bool { return b.api.pod("static-node-1") != nil })
	b.create(shellPod("comes", forever))
	b.waitPhase("comes", corev1.PodRunning)
	after := b.waitPhase("web", corev1.PodRunning)
	if a, c := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != c.ContainerID || c.RestartCount != 0 ||
		c.State.Running == nil {
		t.Errorf("the container was touched: %+v, before %+v", c, a)
	}
}

// A kubelet that stops while pods are being created leaves them half done. The
// next one finishes them, and creates none twice.
func TestAKubeletEndsInTheMiddle(t *testing.T) {
	b := newBed(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		b.create(shellPod(name, forever))
	}
	b.api.wait("the first pod", func() bool {
		return slices.ContainsFunc(names, func(name string) bool { return b.phase(name) == corev1.PodRunning })
	})
	b.stop()
	b.start()
	for _, name := range names {
		b.waitPhase(name, corev1.PodRunning)
	}
	containers, err := b.containerd.Client().ListContainers(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	running := map[string]int{}
	for _, c := range containers {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			running[c.GetLabels()["io.kubernetes.pod.name"]]++
		}
	}
	for _, name := range names {
		if running[name] != 1 || b.api.pod(name).Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s: %d containers run, status %+v", name, running[name], b.api.pod(name).Status.ContainerStatuses[0])
		}
		b.delete(name)
	}
	b.waitEmpty()
}

func TestTheRuntimeAndTheAPIMayGoAway(t *testing.T) {
	b := newBed(t)
	b.create(shellPod("web", forever))
	before := b.waitPhase("web", corev1.PodRunning)
	b.containerd.Down(t)
	ready := func() corev1.ConditionStatus {
		node := &core.Node{}
		if b.api.object("/api/v1/nodes/node-1", node) {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady {
					return c.Status
				}
			}
		}
		return ""
	}
	b.api.wait("the node to be not ready", func() bool { return ready() == corev1.ConditionFalse })
	b.create(shellPod("later", forever))
	b.containerd.Up(t)
	b.api.wait("the node to be ready", func() bool { return ready() == corev1.ConditionTrue })
	b.waitPhase("later", corev1.PodRunning)

	b.api.setAway(true)
	b.api.setAway(false)
	job := shellPod("job", "exit 0")
	job.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	b.api.add(job) // a client may still use a connection that was closed
	b.waitPhase("job", corev1.PodSucceeded)
	if after := b.api.pod("web"); after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Error("the pod did not survive")
	}
}

const staticManifest = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"static"},"spec":{"terminationGracePeriodSeconds":1,"dnsPolicy":"Default","containers":[
{"name":"main","image":"` + critest.BusyboxImage + `","command":["/bin/sh","-c","trap 'exit 0' TERM; ` + forever + `"]}]}}`

func TestStaticPodsHaveMirrors(t *testing.T) {
	b := newBed(t)
	path := filepath.Join(b.config.Sources.StaticPodPath, "static.json")
	if err := os.WriteFile(path, []byte(staticManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	mirror := b.waitPhase("static-node-1", corev1.PodRunning)
	if mirror.Annotations[core.ConfigMirrorAnnotation] == "" || len(mirror.OwnerReferences) != 1 {
		t.Errorf("metadata %+v", mirror.ObjectMeta)
	}
	// Deleting the mirror does not end the pod: the mirror is created again.
	b.delete("static-node-1")
	b.api.wait("a new mirror", func() bool {
		pod := b.api.pod("static-node-1")
		return pod != nil && pod.UID != mirror.UID && pod.Status.Phase == corev1.PodRunning
	})
	if again := b.api.pod("static-node-1"); again.Status.ContainerStatuses[0].ContainerID != mirror.Status.ContainerStatuses[0].ContainerID {
		t.Error("the static pod was restarted")
	}
	b.replacesStaticPod(path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.api.wait("the mirror to go with its pod", func() bool { return b.api.pod("static-node-1") == nil })
	b.waitEmpty()
}

func (a *testAPI) forgetStamps() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stamps = nil
}

// checkStamps checks that these hops have been sent.
func (b *bed) checkStamps(hops ...relay.Hop) {
	b.t.Helper()
	seen := map[relay.Hop]bool{}
	b.api.mu.Lock()
	for _, s := range b.api.stamps {
		seen[s.Hop] = true
	}
	b.api.mu.Unlock()
	for _, hop := range hops {
		if !seen[hop] {
			b.t.Errorf("no stamp %s", hop)
		}
	}
}
