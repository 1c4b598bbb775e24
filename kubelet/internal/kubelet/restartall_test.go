package kubelet

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// A container whose rule says so has its whole pod start over in place: init
// containers run first, containers that succeeded or are never restarted are
// started, too, and no hook or grace period delays it (KEP-5532).
func (b *bed) beginsAnew(t *testing.T) {
	pod := shellPod("anew", `test $(wc -l < /scratch/first) -gt 1 || { until test -f /scratch/beside; do sleep 0.05; done; exit 42; }; `+forever)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(600))
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	another := func(name, script string) core.Container {
		c := *pod.Spec.Containers[0].DeepCopy()
		c.Name, c.Command = name, []string{"/bin/sh", "-c", script}
		return c
	}
	first := another("first", "echo x >> /scratch/first")
	beside := another("beside", "trap '' TERM; touch /scratch/beside; "+forever)
	beside.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/touch", "/scratch/hook"}}}}
	pod.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	pod.Spec.InitContainers, pod.Spec.Containers = []core.Container{first}, append(pod.Spec.Containers, beside)
	b.create(pod)
	b.api.wait("all containers of anew to run once more", func() bool {
		pod = b.api.pod("anew")
		all := append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...)
		for _, s := range all {
			if s.RestartCount != 1 || s.State.Running == nil && s.Name != "first" {
				return false
			}
		}
		return len(all) == 3 && pod.Status.Phase == corev1.PodRunning
	})
	main, other := pod.Status.ContainerStatuses[0], pod.Status.ContainerStatuses[1]
	if last := main.LastTerminationState.Terminated; last == nil || last.ExitCode != 42 {
		t.Errorf("main ended as %+v", last)
	}
	if last := other.LastTerminationState.Terminated; last == nil || last.ExitCode != 137 {
		t.Errorf("beside, which ignores SIGTERM, ended as %+v", last)
	}
	cause := pod.Spec.Containers[0].Name
	for name, want := range map[string]relay.Cause{cause: relay.CauseExit, "beside": relay.CauseRestartAll, "first": relay.CauseRestartAll} {
		if r := b.lastTold(pod, name); r.Number != 1 || r.Cause != want || r.Ended.IsZero() || r.Started.IsZero() {
			t.Errorf("of the restart of %s is told %+v, want cause %s", name, r, want)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.AllContainersRestarting && c.Status != corev1.ConditionFalse {
			t.Errorf("condition %+v", c)
		}
	}
	scratch := filepath.Join(b.config.RootDir, "pods", string(pod.UID), "volumes", "kubernetes.io~empty-dir", "scratch")
	if _, err := os.Stat(filepath.Join(scratch, "hook")); err == nil {
		t.Error("the preStop hook ran")
	}
	sandboxes, err := b.containerd.Client().ListPodSandbox(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, s := range sandboxes {
		if s.GetLabels()["io.kubernetes.pod.uid"] == string(pod.UID) {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d sandboxes", count)
	}
	b.deleteWithin("anew", 1)
	b.api.wait("anew to be gone", func() bool { return b.api.pod("anew") == nil })
}

// lastTold is what the API was told last of the restarts of a pod's container.
func (b *bed) lastTold(pod *core.Pod, container string) (last relay.Restart) {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	for _, r := range b.api.restarts[core.Pods.Path(pod.Namespace, pod.Name)+"/status"] {
		if r.Container == container {
			last = r
		}
	}
	return last
}
