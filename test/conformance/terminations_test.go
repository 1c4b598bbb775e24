package conformance_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/test/harness"
)

var terminations = []behaviour{
	{"Container Runtime blackbox test on terminated container should report termination message as empty when pod succeeds and TerminationMessagePolicy " +
		"FallbackToLogsOnError is set", func(w *world) {
		w.terminates("echo DONE; exit 0", "", func(c *corev1.Container) { c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError })
	}},
	{"Container Runtime blackbox test on terminated container should report termination message from file when pod succeeds and TerminationMessagePolicy " +
		"FallbackToLogsOnError is set", func(w *world) {
		w.terminates("echo -n OK > /dev/termination-log; echo DONE", "OK",
			func(c *corev1.Container) { c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError })
	}},
	{"Container Runtime blackbox test on terminated container should report termination message from log output if TerminationMessagePolicy " +
		"FallbackToLogsOnError is set", func(w *world) {
		w.terminates("echo -n DONE; exit 1", "DONE", func(c *corev1.Container) { c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError })
	}},
	{"Container Runtime blackbox test on terminated container should report termination message if TerminationMessagePath is set as non-root " +
		"user and at a non-default path", func(w *world) {
		w.terminates("echo -n DONE > /dev/termination-custom-log", "DONE", func(c *corev1.Container) {
			c.TerminationMessagePath = "/dev/termination-custom-log"
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000))}
		})
	}},
	{"Container Runtime blackbox test when starting a container that exits should run with the expected status", exitsWithStatus},
}

func (w *world) terminates(text, message string, change func(*corev1.Container)) {
	w.t.Helper()
	pod := w.script("ends", text)
	change(&pod.Spec.Containers[0])
	w.Create(pod)
	ended := w.await("ends", "ended", func(p *corev1.Pod) bool { return harness.Exited(p) != nil })
	if got := harness.Exited(ended).Message; got != message {
		w.t.Errorf("the termination message is %q, want %q", got, message)
	}
}

// exitsWithStatus has containers fail a number of times, under each restart
// policy, and checks the status that they end with.
func exitsWithStatus(w *world) {
	for _, tc := range []struct {
		policy   corev1.RestartPolicy
		failures int
		then     string
		phase    corev1.PodPhase
		restarts int32
		ready    bool
	}{
		{corev1.RestartPolicyAlways, 2, "sleep 3600", corev1.PodRunning, 2, true},
		{corev1.RestartPolicyOnFailure, 1, "exit 0", corev1.PodSucceeded, 1, false},
		{corev1.RestartPolicyNever, 1, "exit 0", corev1.PodFailed, 0, false},
	} {
		name := map[corev1.RestartPolicy]string{corev1.RestartPolicyAlways: "rpa", corev1.RestartPolicyOnFailure: "rpof", corev1.RestartPolicyNever: "rpn"}[tc.policy]
		pod := w.script(name, fmt.Sprintf(`echo >> /count/times; [ $(wc -l < /count/times) -le %d ] && exit 1; %s`, tc.failures, tc.then))
		pod.Spec.RestartPolicy = tc.policy
		pod.Spec.Volumes = []corev1.Volume{emptyDir("count")}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "count", MountPath: "/count"}}
		w.Create(pod)
		w.await(name, fmt.Sprintf("%s after %d restarts, ready %v", tc.phase, tc.restarts, tc.ready), func(p *corev1.Pod) bool {
			if p.Status.Phase != tc.phase || len(p.Status.ContainerStatuses) != 1 {
				return false
			}
			s := p.Status.ContainerStatuses[0]
			return s.RestartCount == tc.restarts && s.Ready == tc.ready && (s.State.Running != nil) == (tc.phase == corev1.PodRunning) &&
				(s.State.Terminated != nil) == (tc.phase != corev1.PodRunning)
		})
	}
}
