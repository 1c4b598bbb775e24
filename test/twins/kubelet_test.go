package twins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kctl/test/harness"
)

// kubeletConfig is what our kubelet has a flag for and upstream's has not, and
// what lets upstream's run on older machines.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
podLogsDir: %s
failCgroupV1: false
failSwapOn: false
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}}
authorization: {mode: Webhook}
`

// kubelets are ours and upstream's, one of which runs on the node.
type kubelets struct {
	*scene
	path   string // upstream's
	flags  []string
	theirs *twin // if it runs
}

// TestKubelet has a node change hands between our kubelet and upstream's, in
// the same directories. A pod that one has started is the other's, container
// and volumes and all; one that is deleted while none runs ends under the next.
func TestKubelet(t *testing.T) {
	upstream := harness.Upstream(t, "kubelet")
	c := harness.Start(t, harness.Options{Without: []string{"kubelet"}, Flags: []string{"--kubelet-flags=--sync-frequency=2s"}})
	shareDirectory(t, filepath.Join(c.Dir, "kubelet"))
	c.Kctl("up", "--dir", c.Dir, "--without=")
	config := filepath.Join(c.Dir, "upstream-kubelet.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeletConfig, filepath.Join(c.Dir, "log", "pods")), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kubelets{scene: newScene(t, c), path: filepath.Join(upstream, "kubelet"), flags: append(flagsOf(t, c, "kubelet", "--pod-logs-dir"), "--config="+config)}

	c.Kctl("create", "configmap", "settings", "--from-literal=step=none")
	stayed := map[string]string{}
	for i, step := range []struct {
		name   string
		change func()
	}{{"upstream's", k.toTheirs}, {"ours", k.toOurs}, {"upstream's again", k.toTheirs}, {"ours again", k.toOurs}} {
		stays, goes := fmt.Sprintf("stays-%d", i), fmt.Sprintf("goes-%d", i)
		c.Create(k.withSettings(stays))
		c.Create(k.pod(goes))
		c.AwaitRunning(stays)
		c.AwaitRunning(goes)
		stayed[stays] = k.container(stays)
		k.stop()
		c.Kctl("delete", "pod", goes, "--wait=false")
		step.change()
		ok := t.Run(step.name, func(t *testing.T) {
			s := k.in(t)
			s.deleted(goes)
			s.works(fmt.Sprintf("works-%d", i))
			s.c.Kctl("patch", "configmap", "settings", "-p", fmt.Sprintf(`{"data":{"step":%q}}`, step.name))
			for pod, was := range stayed {
				if is := s.container(pod); is != was {
					t.Errorf("%s was %s and is %s", pod, was, is)
				}
				s.logs("began\n", pod)
				s.settings(pod, step.name)
			}
		})
		if !ok {
			return
		}
	}
	for pod := range stayed {
		k.deleted(pod)
	}
}

// shareDirectory prepares the kubelets' directory as docs/kubelet-differences.md says, for
// machines whose root is not a shared mount: upstream's kubelet would mount the
// directory over itself, and hide the volumes which ours has mounted.
func shareDirectory(t *testing.T, dir string) {
	t.Helper()
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_SHARED|unix.MS_REC, "")
	}
	if err != nil {
		t.Fatalf("make %s a shared mount: %v", dir, err)
	}
}

// withSettings is a pod that sees the config map settings, in a volume of the
// kind that service account tokens are in.
func (s *scene) withSettings(name string) *corev1.Pod {
	pod := s.pod(name)
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "settings", MountPath: "/settings"})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
	}}})
	return pod
}

// settings waits until a container sees a change in its volume. Ours looks for
// one as soon as the pod changes, upstream's at each sync.
func (s *scene) settings(name, want string) {
	s.t.Helper()
	s.c.Kctl("annotate", "--overwrite", "pod", name, "twins.example/settings="+want)
	harness.Eventually(s.t, patience, func() error {
		if out := s.c.Kctl("exec", name, "--", "cat", "/settings/step"); out != want {
			return fmt.Errorf("%s sees %q, not %q", name, out, want)
		}
		return nil
	})
}

// stop ends whichever kubelet runs.
func (k *kubelets) stop() {
	k.t.Helper()
	if k.theirs == nil {
		k.c.Signal("kubelet", syscall.SIGTERM)
		return
	}
	k.theirs.stop()
	k.theirs = nil
}

// toTheirs starts upstream's kubelet, and waits until it serves the node.
func (k *kubelets) toTheirs() {
	k.t.Helper()
	k.theirs = startTwin(k.t, k.c, k.path, k.flags...)
	k.theirs.until(func() error { return k.ready(true) })
}

func (k *kubelets) toOurs() {
	k.t.Helper()
	k.c.Kctl("up", "--dir", k.c.Dir)
	harness.Eventually(k.t, patience, func() error { return k.ready(false) })
}

// ready says whether the node is ready, and whose its kubelet is: only
// upstream's calls its version by nothing but a number.
func (k *kubelets) ready(theirs bool) error {
	out := k.c.Kctl("get", "node", k.c.Node, "-o", `jsonpath={.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status}`)
	version, isReady, _ := strings.Cut(out, " ")
	if isReady != "True" || theirs == strings.Contains(version, "kctl") {
		return fmt.Errorf("the node's kubelet and readiness: %s", out)
	}
	return nil
}
