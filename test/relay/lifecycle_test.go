package relay_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// One cluster serves all subtests; each has its own pods.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	shell := c.Shell()
	for name, test := range map[string]func(*testing.T, *harness.Cluster, string){
		"ends by its restart policy":    endsByItsRestartPolicy,
		"crash back-off":                crashBackOff,
		"environment and volumes":       environmentAndVolumes,
		"graceful delete":               gracefulDelete,
		"logs":                          logs,
		"init containers":               initContainers,
		"resources":                     resources,
		"image that is not there":       imageThatIsNotThere,
		"unschedulable":                 unschedulable,
		"preemption":                    preemption,
		"kubelet restart":               kubeletRestart,
		"service account token":         serviceAccountToken,
		"apply, change and wait":        applyChangeAndWait,
		"a pod's container and its log": deletedPodLeavesNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, c.In(t), shell) })
	}
}

func script(name, image, text string) *corev1.Pod {
	pod := harness.Pod(name, image)
	pod.Spec.Containers[0].Command = []string{"sh", "-c", text}
	return pod
}

func endsByItsRestartPolicy(t *testing.T, c *harness.Cluster, shell string) {
	for _, tc := range []struct {
		name, text string
		policy     corev1.RestartPolicy
		phase      corev1.PodPhase
		code       int32
	}{
		{"never-ok", "exit 0", corev1.RestartPolicyNever, corev1.PodSucceeded, 0},
		{"never-bad", "exit 3", corev1.RestartPolicyNever, corev1.PodFailed, 3},
		{"onfailure-ok", "exit 0", corev1.RestartPolicyOnFailure, corev1.PodSucceeded, 0},
	} {
		pod := script(tc.name, shell, tc.text)
		pod.Spec.RestartPolicy = tc.policy
		c.Create(pod)
		got := c.Await("default", tc.name, string(tc.phase), func(p *corev1.Pod) bool { return p.Status.Phase == tc.phase })
		if ended := harness.Exited(got); ended == nil || ended.ExitCode != tc.code {
			t.Errorf("%s: ended %+v, want exit code %d", tc.name, ended, tc.code)
		}
		c.Kctl("delete", "pod", tc.name)
	}
}

func crashBackOff(t *testing.T, c *harness.Cluster, shell string) {
	c.Create(script("crashes", shell, "exit 1"))
	pod := c.Await("default", "crashes", "in CrashLoopBackOff after a restart", func(p *corev1.Pod) bool {
		if len(p.Status.ContainerStatuses) == 0 {
			return false
		}
		s := p.Status.ContainerStatuses[0]
		return s.RestartCount >= 1 && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	})
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 1 {
		t.Errorf("the last state is %+v", last)
	}
	if table := c.Kctl("get", "pod", "crashes"); !strings.Contains(table, "CrashLoopBackOff") {
		t.Errorf("get shows\n%s", table)
	}
	c.Kctl("delete", "pod", "crashes", "--now")
}

func environmentAndVolumes(t *testing.T, c *harness.Cluster, shell string) {
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "greeting"), []byte("from the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Kctl("create", "configmap", "settings", "--from-literal=colour=blue")
	c.Kctl("create", "secret", "generic", "hidden", "--from-literal=word=sesame")
	pod := script("volumes", shell, `set -e
echo "colour=$COLOUR word=$WORD me=$POD_NAME args=$(echo "$0")"
cat /settings/colour; echo; cat /hidden/word; echo; cat /host/greeting; echo
echo kept > /scratch/file; cat /scratch/file; pwd; stat -c %a /hidden/..data/word`)
	container := &pod.Spec.Containers[0]
	container.WorkingDir = "/scratch"
	container.Env = []corev1.EnvVar{
		{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "colour"}}},
		{Name: "WORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "hidden"}, Key: "word"}}},
		{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
	}
	mode := int32(0o400)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "settings",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
		{Name: "hidden", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hidden", DefaultMode: &mode}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	for _, v := range pod.Spec.Volumes {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	c.Create(pod)
	c.Await("default", "volumes", "Succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	want := "colour=blue word=sesame me=volumes args=sh\nblue\nsesame\nfrom the host\nkept\n/scratch\n400\n"
	if log := c.Kctl("logs", "volumes"); log != want {
		t.Errorf("the log is %q, want %q", log, want)
	}
	c.Kctl("delete", "pod/volumes", "configmap/settings", "secret/hidden")
}

func gracefulDelete(t *testing.T, c *harness.Cluster, shell string) {
	host := t.TempDir()
	pod := script("graceful", shell, `trap 'echo asked > /host/told; exit 0' TERM; echo ready > /host/ready; while :; do sleep 0.05; done`)
	grace := int64(30)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "host", MountPath: "/host"}}
	c.Create(pod)
	harness.Eventually(t, 60*time.Second, func() error {
		_, err := os.Stat(filepath.Join(host, "ready"))
		return err
	})
	c.Kctl("delete", "pod", "graceful", "--wait=false")
	c.AwaitGone("graceful")
	if told, err := os.ReadFile(filepath.Join(host, "told")); err != nil || string(told) != "asked\n" {
		t.Errorf("the container was not asked to end: %q, %v", told, err)
	}
}

func logs(t *testing.T, c *harness.Cluster, shell string) {
	c.Create(script("talks", shell, "echo one; echo two >&2; echo three; sleep 3600"))
	pod := c.AwaitRunning("talks")
	harness.Eventually(t, 30*time.Second, func() error {
		// Each stream keeps its order; there is none between the two.
		got := strings.Fields(c.Kctl("logs", "talks"))
		if len(got) != 3 || !slices.Contains(got, "two") || slices.Index(got, "one") > slices.Index(got, "three") {
			return &unexpected{fmt.Sprint(got)}
		}
		return nil
	})
	if got := c.Kctl("logs", "talks", "--tail=1"); strings.Count(got, "\n") != 1 {
		t.Errorf("--tail=1: %q", got)
	}
	file := filepath.Join(c.Dir, "log", "pods", "default_talks_"+string(pod.UID), "c", "0.log")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT[^ ]+ stdout F one$`).Match(data) {
		t.Errorf("%s is not in the CRI format:\n%s", file, data)
	}
	c.Kctl("delete", "pod", "talks", "--now")
}

type unexpected struct{ got string }

func (e *unexpected) Error() string { return "got " + e.got }

func initContainers(t *testing.T, c *harness.Cluster, shell string) {
	pod := script("prepared", shell, "cat /work/steps; sleep 3600")
	for _, name := range []string{"first", "second"} {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
			Name:            name,
			Image:           shell,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"sh", "-c", "echo " + name + " >> /work/steps"},
			VolumeMounts:    []corev1.VolumeMount{{Name: "work", MountPath: "/work"}},
		})
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/work"}}
	c.Create(pod)
	c.AwaitRunning("prepared")
	harness.Eventually(t, 30*time.Second, func() error {
		if got := c.Kctl("logs", "prepared"); got != "first\nsecond\n" {
			return &unexpected{got}
		}
		return nil
	})
	c.Kctl("delete", "pod", "prepared", "--now")
}

func resources(t *testing.T, c *harness.Cluster, shell string) {
	pod := script("limited", shell, `cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes; sleep 3600`)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("64Mi"), "cpu": resource.MustParse("500m")}
	created := c.Create(pod)
	if created.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("the class of service is %s", created.Status.QOSClass)
	}
	c.AwaitRunning("limited")
	harness.Eventually(t, 30*time.Second, func() error {
		if got := c.Kctl("logs", "limited"); got != "67108864\n" {
			return &unexpected{got}
		}
		return nil
	})
	c.Kctl("delete", "pod", "limited", "--now")
}

func imageThatIsNotThere(t *testing.T, c *harness.Cluster, _ string) {
	c.Create(harness.Pod("no-image", "kctl.local/nonsense"))
	waiting := func(reason string) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
				p.Status.ContainerStatuses[0].State.Waiting.Reason == reason
		}
	}
	c.Await("default", "no-image", "in ErrImagePull", waiting("ErrImagePull"))
	c.Await("default", "no-image", "in ImagePullBackOff", waiting("ImagePullBackOff"))
	described := c.Kctl("describe", "pod", "no-image")
	if !strings.Contains(described, "ErrImagePull") || !strings.Contains(described, "not found") {
		t.Errorf("describe does not say why:\n%s", described)
	}
	if events := c.Kctl("get", "events"); !strings.Contains(events, "nonsense") {
		t.Errorf("the events do not name the image:\n%s", events)
	}
	c.Kctl("delete", "pod", "no-image")
	c.AwaitGone("no-image")
}

func unschedulable(t *testing.T, c *harness.Cluster, shell string) {
	pod := harness.Pod("huge", shell)
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000")}
	c.Create(pod)
	got := c.Await("default", "huge", "found unschedulable", func(p *corev1.Pod) bool {
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				return true
			}
		}
		return false
	})
	if message := got.Status.Conditions[0].Message; !strings.Contains(message, "0/1 nodes are available: 1 Insufficient cpu") {
		t.Errorf("the reason is %q", message)
	}
	harness.Eventually(t, 30*time.Second, func() error {
		if events := c.Kctl("get", "events"); !strings.Contains(events, "FailedScheduling") {
			return &unexpected{events}
		}
		return nil
	})
	c.Kctl("delete", "pod", "huge")
	// Removing a taint can make the pod fit, so the pod is tried again.
	c.Kctl("cordon", c.Node)
	c.Create(harness.Pod("cordoned", shell, "sleep", "3600"))
	c.Await("default", "cordoned", "found unschedulable", func(p *corev1.Pod) bool {
		return len(p.Status.Conditions) > 0 && strings.Contains(p.Status.Conditions[0].Message, "unschedulable")
	})
	c.Kctl("uncordon", c.Node)
	c.AwaitRunning("cordoned")
	c.Kctl("delete", "pod", "cordoned", "--now")
}

func kubeletRestart(t *testing.T, c *harness.Cluster, shell string) {
	c.Create(script("survives", shell, "while :; do sleep 0.05; done"))
	before := c.AwaitRunning("survives").Status.ContainerStatuses[0]
	c.Create(script("deleted-meanwhile", shell, "while :; do sleep 0.05; done"))
	c.AwaitRunning("deleted-meanwhile")
	c.Kill("kubelet")
	c.Kctl("delete", "pod", "deleted-meanwhile", "--wait=false")
	c.Up()
	c.AwaitGone("deleted-meanwhile")
	c.Create(harness.Pod("after", shell, "sleep", "3600")) // shows that the kubelet still works
	c.AwaitRunning("after")
	after := c.AwaitRunning("survives").Status.ContainerStatuses[0]
	if after.ContainerID != before.ContainerID || after.RestartCount != before.RestartCount {
		t.Errorf("before %s (%d restarts), after %s (%d restarts)", before.ContainerID, before.RestartCount, after.ContainerID, after.RestartCount)
	}
	c.Kctl("delete", "pod", "survives", "after", "--now")
}

func serviceAccountToken(t *testing.T, c *harness.Cluster, shell string) {
	pod := script("token", shell, `cd /var/run/secrets/kubernetes.io/serviceaccount && cat namespace && echo && head -1 ca.crt && cut -d. -f1 token | wc -l`)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.Create(pod)
	c.Await("default", "token", "Succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	if log := c.Kctl("logs", "token"); log != "default\n-----BEGIN CERTIFICATE-----\n1\n" && log != "default\n-----BEGIN CERTIFICATE-----\n0\n" {
		t.Errorf("the log is %q", log)
	}
	c.Kctl("delete", "pod", "token")
}

func applyChangeAndWait(t *testing.T, c *harness.Cluster, shell string) {
	manifest := `apiVersion: v1
kind: Pod
metadata: {name: applied, labels: {step: "one"}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: ` + shell + `, imagePullPolicy: IfNotPresent, command: [sleep, "3600"]}]
`
	for _, step := range []struct{ text, want string }{
		{manifest, "pod/applied created"},
		{manifest, "pod/applied unchanged"},
		{strings.Replace(manifest, `"one"`, `"two"`, 1), "pod/applied configured"},
	} {
		if out := c.KctlInput(step.text, "apply", "-f", "-"); strings.TrimSpace(out) != step.want {
			t.Errorf("apply printed %q, want %q", out, step.want)
		}
	}
	c.Kctl("wait", "pod/applied", "--for=condition=Ready", "--timeout=60s")
	if out := c.Kctl("get", "pods", "-l", "step=two", "-o", "name"); out != "pod/applied\n" {
		t.Errorf("selected %q", out)
	}
	c.Kctl("delete", "pod", "applied")
	c.Kctl("wait", "pod/applied", "--for=delete", "--timeout=60s")
}

func deletedPodLeavesNothing(t *testing.T, c *harness.Cluster, shell string) {
	c.Create(script("passing", shell, "sleep 3600"))
	pod := c.AwaitRunning("passing")
	if err := c.Client().CoreV1().Pods("default").Delete(t.Context(), "passing", *metav1.NewDeleteOptions(1)); err != nil {
		t.Fatal(err)
	}
	c.AwaitGone("passing")
	for _, dir := range []string{filepath.Join(c.Dir, "kubelet", "pods", string(pod.UID)),
		filepath.Join(c.Dir, "log", "pods", "default_passing_"+string(pod.UID))} {
		harness.Eventually(t, 60*time.Second, func() error {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				return &unexpected{dir}
			}
			return nil
		})
	}
}
