package twins_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/test/harness"
)

// script runs until it is told to end, which it notes in a directory of the
// machine's, or to fail.
const script = `trap 'echo $0 >/ends/$0; exit 0' TERM
trap 'exit 3' USR1
echo began
while :; do sleep 1 & wait $!; done`

// scene is a cluster and what its pods need.
type scene struct {
	t     *testing.T
	c     *harness.Cluster
	image string
	ends  string // where containers note that they ended in peace
}

func newScene(t *testing.T, c *harness.Cluster) *scene {
	return &scene{t: t, c: c, image: c.Shell(), ends: t.TempDir()}
}

// in returns the scene for a subtest.
func (s *scene) in(t *testing.T) *scene {
	sub := *s
	sub.t, sub.c = t, s.c.In(t)
	return &sub
}

func (s *scene) pod(name string) *corev1.Pod {
	pod := harness.Pod(name, s.image)
	grace := int64(60) // far longer than the container needs
	pod.Spec.TerminationGracePeriodSeconds = &grace
	c := &pod.Spec.Containers[0]
	c.Command = []string{"sh", "-c", script, name}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "ends", MountPath: "/ends"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "ends", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: s.ends}}}}
	return pod
}

// container is the container of a pod that stays while programs change.
func (s *scene) container(name string) string {
	s.t.Helper()
	return s.c.Kctl("get", "pod", name, "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")
}

// works takes a pod through its life, with everything that goes through several
// programs.
func (s *scene) works(name string) {
	s.t.Helper()
	s.c.Create(s.pod(name))
	s.lives(name)
	s.deleted(name)
}

// lives checks a pod's status, logs, exec and the restart of its container.
func (s *scene) lives(name string) {
	s.t.Helper()
	pod := s.c.AwaitRunning(name)
	s.c.Kctl("wait", "pod/"+name, "--for=condition=Ready", "--timeout=120s")
	if pod.Spec.NodeName != s.c.Node || pod.Status.PodIP == "" || pod.Status.StartTime == nil {
		s.t.Errorf("pod %s is on %q, with the address %q, from %v", name, pod.Spec.NodeName, pod.Status.PodIP, pod.Status.StartTime)
	}
	s.logs("began\n", name)
	if out := s.c.Kctl("exec", name, "--", "echo", "through"); out != "through\n" {
		s.t.Errorf("exec says %q", out)
	}
	// The command may be killed by the end that it brings about.
	s.c.Run("", s.c.Bin("kctl"), "exec", name, "--", "kill", "-USR1", "1")
	s.c.Await("default", name, "restarted", func(pod *corev1.Pod) bool {
		if !harness.Running(pod) {
			return false
		}
		status := pod.Status.ContainerStatuses[0]
		last := status.LastTerminationState.Terminated
		return status.RestartCount == 1 && last != nil && last.ExitCode == 3
	})
	s.logs("began\n", "--previous", name)
	s.logs("began\n", name)
}

func (s *scene) logs(want string, args ...string) {
	s.t.Helper()
	harness.Eventually(s.t, patience, func() error {
		if r := s.c.Run("", s.c.Bin("kctl"), append([]string{"logs"}, args...)...); r.Code != 0 || r.Stdout != want {
			return fmt.Errorf("kctl logs %v: exit code %d: %q %s", args, r.Code, r.Stdout, r.Stderr)
		}
		return nil
	})
}

// deleted deletes a pod: its container ends in peace, and nothing of it stays.
func (s *scene) deleted(name string) {
	s.t.Helper()
	uid := s.c.Kctl("get", "pod", name, "-o", "jsonpath={.metadata.uid}")
	s.c.Kctl("delete", "pod", name, "--timeout=90s")
	if _, err := os.Stat(filepath.Join(s.ends, name)); err != nil {
		s.t.Errorf("the container did not end in peace: %v", err)
	}
	if n := harness.RunningContainers(s.t, s.c.Dir)[name]; n != 0 {
		s.t.Errorf("%d containers of a deleted pod run", n)
	}
	dir := filepath.Join(s.c.Dir, "kubelet", "pods", uid)
	harness.Eventually(s.t, patience, func() error {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the pod's directory stays: %s: %v", dir, err)
		}
		return nil
	})
}
