package conformance_test

import (
	"bytes"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/test/harness"
)

var ephemerals = []behaviour{
	{"Ephemeral Containers will start an ephemeral container in an existing pod", ephemeralStarts},
	{"Ephemeral Containers should update the ephemeral containers in an existing pod", ephemeralUpdates},
}

var inits = []behaviour{
	{"InitContainer should invoke init containers on a RestartAlways pod", initsOfAlways},
	{"InitContainer should invoke init containers on a RestartNever pod", initsOfNever},
	{"InitContainer should not start app containers and fail the pod if init containers fail on a RestartNever pod", initFailsNever},
	{"InitContainer should not start app containers if init containers fail on a RestartAlways pod", initFailsAlways},
}

func (w *world) debugger(name string, command ...string) corev1.EphemeralContainer {
	return corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: name, Image: w.shell, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
		},
		TargetContainerName: "c",
	}
}

func ephemeralRuns(name string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		for _, s := range p.Status.EphemeralContainerStatuses {
			if s.Name == name {
				return s.State.Running != nil
			}
		}
		return false
	}
}

// addDebugger adds an ephemeral container as kubectl debug does, by a patch.
func (w *world) addDebugger(pod *corev1.Pod, c corev1.EphemeralContainer) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []corev1.EphemeralContainer{c}}})
	w.must(err)
	_, err = w.pods().Patch(w.ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "ephemeralcontainers")
	w.must(err)
}

func ephemeralStarts(w *world) {
	pod := w.start(w.lasting("debugged"))
	c := w.debugger("debugger", "sh", "-c", "echo polo; ps; sleep 3600")
	c.Stdin, c.TTY = true, true
	w.addDebugger(pod, c)
	w.await("debugged", "being debugged", ephemeralRuns("debugger"))
	w.logged("debugged", "debugger", "polo")
	// It shares the process namespace of its target container.
	w.logged("debugged", "debugger", "trap 'exit 0' TERM")
	if out := w.exec("debugged", "debugger", "echo", "marco"); strings.TrimSpace(out) != "marco" {
		w.t.Errorf("exec in it printed %q", out)
	}
}

func ephemeralUpdates(w *world) {
	pod := w.start(w.lasting("debugged"))
	w.addDebugger(pod, w.debugger("debugger", "sleep", "3600"))
	w.await("debugged", "being debugged", ephemeralRuns("debugger"))
	current, err := w.pods().Get(w.ctx, "debugged", metav1.GetOptions{})
	w.must(err)
	current.Spec.EphemeralContainers = append(current.Spec.EphemeralContainers, w.debugger("debugger2", "sleep", "3600"))
	updated, err := w.pods().UpdateEphemeralContainers(w.ctx, "debugged", current, metav1.UpdateOptions{})
	w.must(err)
	if len(updated.Spec.EphemeralContainers) != 2 {
		w.t.Fatalf("updated, it has the ephemeral containers %v", updated.Spec.EphemeralContainers)
	}
	w.await("debugged", "being debugged twice", ephemeralRuns("debugger2"))
	after := w.await("debugged", "being debugged", ephemeralRuns("debugger"))
	if s := after.Status.ContainerStatuses[0]; s.RestartCount != 0 || s.ContainerID != pod.Status.ContainerStatuses[0].ContainerID {
		w.t.Errorf("the debugged container was restarted: %+v", s)
	}
}

// withInits adds init containers that write down the order in which they ran.
func (w *world) withInits(pod *corev1.Pod, texts ...string) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{emptyDir("steps")}
	mounts := []corev1.VolumeMount{{Name: "steps", MountPath: "/steps"}}
	for i, text := range texts {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			Name: "init" + string(rune('1'+i)), Image: w.shell, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{"sh", "-c", text}, VolumeMounts: mounts,
		})
	}
	pod.Spec.Containers[0].VolumeMounts = mounts
	return pod
}

func (w *world) initialized(pod *corev1.Pod) {
	w.t.Helper()
	if status := conditionStatus(pod, corev1.PodInitialized); status != corev1.ConditionTrue {
		w.t.Errorf("the condition Initialized is %s", status)
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 || !s.Ready {
			w.t.Errorf("the init container %s is %+v", s.Name, s)
		}
	}
}

func initsOfAlways(w *world) {
	pod := w.lasting("prepared")
	pod = w.start(w.withInits(pod, "echo 1 >> /steps/s", "echo 2 >> /steps/s"))
	w.initialized(pod)
	if got := w.exec("prepared", "c", "cat", "/steps/s"); got != "1\n2\n" {
		w.t.Errorf("the steps are %q", got)
	}
}

func initsOfNever(w *world) {
	pod := w.withInits(w.script("prepared", "cat /steps/s"), "echo 1 >> /steps/s", "echo 2 >> /steps/s")
	if got := w.output(pod); got != "1\n2\n" {
		w.t.Errorf("the steps are %q", got)
	}
	got, err := w.pods().Get(w.ctx, "prepared", metav1.GetOptions{})
	w.must(err)
	w.initialized(got)
}

func initFailsNever(w *world) {
	w.Create(w.withInits(w.script("unprepared", "true"), "true", "false"))
	pod := w.await("unprepared", "Failed", inPhase(corev1.PodFailed))
	if status := conditionStatus(pod, corev1.PodInitialized); status != corev1.ConditionFalse {
		w.t.Errorf("the condition Initialized is %s", status)
	}
	if s := pod.Status.InitContainerStatuses; s[0].State.Terminated.ExitCode != 0 || s[1].State.Terminated.ExitCode == 0 {
		w.t.Errorf("the init containers are %+v", s)
	}
	if s := pod.Status.ContainerStatuses[0]; s.State.Running != nil || s.ContainerID != "" {
		w.t.Errorf("the container is %+v", s)
	}
}

func initFailsAlways(w *world) {
	w.Create(w.withInits(w.lasting("unprepared"), "false", "true"))
	pod := w.await("unprepared", "tried for the third time", func(p *corev1.Pod) bool {
		s := p.Status.InitContainerStatuses
		return len(s) == 2 && s[0].RestartCount >= 2
	})
	if pod.Status.Phase != corev1.PodPending || conditionStatus(pod, corev1.PodInitialized) != corev1.ConditionFalse {
		w.t.Errorf("the pod is %s, Initialized %s", pod.Status.Phase, conditionStatus(pod, corev1.PodInitialized))
	}
	for _, s := range []corev1.ContainerStatus{pod.Status.InitContainerStatuses[1], pod.Status.ContainerStatuses[0]} {
		if s.State.Waiting == nil || s.State.Waiting.Reason != "PodInitializing" || s.ContainerID != "" {
			w.t.Errorf("%s is %+v", s.Name, s)
		}
	}
}

var logsAndFiles = []behaviour{
	{"Kubelet when scheduling a busybox command in a pod should print the output to logs", func(w *world) {
		if got := w.output(w.script("prints", "echo Hello World")); got != "Hello World\n" {
			w.t.Errorf("the log is %q", got)
		}
	}},
	{"Kubelet when scheduling a busybox command that always fails in a pod should be possible to delete", func(w *world) {
		pod := w.script("fails", "false")
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		w.Create(pod)
		w.await("fails", "restarted", func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount > 0
		})
		w.delete("fails")
		w.gone("fails")
	}},
	{"Kubelet when scheduling a busybox command that always fails in a pod should have an terminated reason", func(w *world) {
		w.Create(w.script("fails", "false"))
		pod := w.await("fails", "ended", func(p *corev1.Pod) bool { return harness.Exited(p) != nil })
		if ended := harness.Exited(pod); ended.Reason != "Error" || ended.ExitCode != 1 {
			w.t.Errorf("it ended %+v", ended)
		}
	}},
	{"Kubelet when scheduling a read only busybox container should not write to root filesystem [LinuxOnly]", func(w *world) {
		pod := w.script("reads", "echo test > /file; cat /file; true")
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
		w.contains(w.output(pod), "/file: Read-only file system")
	}},
	{"Kubelet when scheduling an agnhost Pod with hostAliases should write entries to /etc/hosts", func(w *world) {
		pod := w.script("hosts", "cat /etc/hosts")
		pod.Spec.HostAliases = []corev1.HostAlias{{IP: "123.45.67.89", Hostnames: []string{"foo", "bar"}}}
		w.contains(w.output(pod), "\n123.45.67.89\tfoo\tbar\n")
	}},
	{"KubeletManagedEtcHosts should test kubelet managed /etc/hosts file", managedHosts},
}

// managedHosts: the kubelet writes a pod's /etc/hosts, unless a volume of the
// user's is mounted there. The file of a pod on the host's network says that it
// is managed.
func managedHosts(w *world) {
	const own, hosts = "# Kubernetes-managed hosts file.", "# Kubernetes-managed hosts file (host network)."
	pod := w.lasting("hosts")
	mounted := *pod.Spec.Containers[0].DeepCopy()
	mounted.Name = "mounted"
	mounted.VolumeMounts = []corev1.VolumeMount{{Name: "hosts", MountPath: "/etc/hosts"}}
	pod.Spec.Containers = append(pod.Spec.Containers, mounted)
	pod.Spec.Volumes = []corev1.Volume{{Name: "hosts", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/etc/hosts", Type: new(corev1.HostPathFile)}}}}
	w.start(pod)
	host := w.lasting("hostnetwork")
	host.Spec.HostNetwork = true
	w.start(host)
	for _, tc := range []struct {
		pod, container string
		own, host      bool
	}{{"hosts", "c", true, false}, {"hosts", "mounted", false, false}, {"hostnetwork", "c", false, true}} {
		text := []byte(w.exec(tc.pod, tc.container, "cat", "/etc/hosts"))
		if bytes.HasPrefix(text, []byte(own)) != tc.own || bytes.HasPrefix(text, []byte(hosts)) != tc.host {
			w.t.Errorf("/etc/hosts of %s in %s is\n%s", tc.container, tc.pod, text)
		}
	}
}
