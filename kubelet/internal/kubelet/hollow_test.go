package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// newHollowBed is a hollow kubelet with an API in memory; configure may be nil.
func newHollowBed(t *testing.T, configure func(*config.Config), change ...func(*simulated.Options)) (*bed, *simulated.Runtime) {
	b := &bed{t: t, api: newTestAPI(t)}
	dir := t.TempDir()
	b.config = config.New()
	b.config.Kubeconfig, b.config.NodeName, b.config.NodeIP = b.api.kubeconfig(), "node-1", "192.0.2.1"
	b.config.Serving.Address = "127.0.0.1"
	b.config.RootDir, b.config.PodLogsDir, b.config.CertDir = filepath.Join(dir, "kubelet"), filepath.Join(dir, "logs"), filepath.Join(dir, "pki")
	if configure != nil {
		configure(b.config)
	}
	cfg, err := rest.LoadKubeconfig(b.config.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if b.client, err = rest.New(cfg); err != nil {
		t.Fatal(err)
	}
	options := simulated.Options{Clock: clock.RealClock{}}
	for _, f := range change {
		f(&options)
	}
	runtime := simulated.New(options)
	b.startHollow(runtime, options.Clock.(clock.WithTicker))
	t.Cleanup(b.finish)
	return b, runtime
}

// startHollow runs a hollow kubelet on runtime, with the same clock, until b.stop.
func (b *bed) startHollow(runtime *simulated.Runtime, clock clock.WithTicker) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	registry := prometheus.NewRegistry()
	k, err := NewHollow(ctx, b.config, Hollow{Runtime: runtime, Machine: node.Machine{CPUs: 8, Memory: 32 << 30, EphemeralStorage: 1 << 40}},
		clock, zaptest.NewLogger(b.t, zaptest.Level(zap.InfoLevel)), registry)
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	b.again = func() { b.startHollow(runtime, clock) }
	b.run(k, ctx, cancel)
}

// value is the value of a counter or gauge, or a histogram's number of
// observations.
func (b *bed) value(name string) float64 {
	b.t.Helper()
	families, err := b.kubelet.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	b.t.Fatalf("no metric %s", name)
	return 0
}

func hollowPod(name string, annotations map[string]string) *core.Pod {
	pod := shellPod(name, forever)
	pod.Annotations = annotations
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Volumes = []corev1.Volume{{Name: "memory",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/memory"}}
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
	}
	return pod
}

// A hollow kubelet takes pods through their phases, driven by its runtime's
// events, and leaves nothing on the machine.
func TestHollowPods(t *testing.T) {
	b, runtime := newHollowBed(t, nil)
	b.api.wait("the node", func() bool {
		n := &core.Node{}
		return b.api.object("/api/v1/nodes/node-1", n) && n.Status.Capacity.Cpu().Value() == 8
	})
	b.eventually("somebody to listen to the runtime", func() bool { return runtime.Listeners() == 1 })
	web := hollowPod("web", nil)
	web.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WRITTEN", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
		VolumeName: "memory", Path: "file", Key: "KEY",
	}}}}
	b.create(web)
	b.api.wait("web to be ready", func() bool {
		pod := b.api.pod("web")
		return pod != nil && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	})
	if pod := b.api.pod("web"); pod.Status.PodIP != "10.88.0.1" || pod.Status.HostIP != "192.0.2.1" {
		t.Errorf("addresses %s on %s", pod.Status.PodIP, pod.Status.HostIP)
	}
	b.create(hollowPod("job", map[string]string{simulated.ExitAfter: "10ms"}))
	b.waitPhase("job", corev1.PodSucceeded)
	b.create(hollowPod("failing", map[string]string{simulated.ExitAfter: "10ms", simulated.ExitCode: "3"}))
	if pod := b.waitPhase("failing", corev1.PodFailed); pod.Status.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
		t.Errorf("state %+v", pod.Status.ContainerStatuses[0].State)
	}
	if !b.kubelet.pleg.Streaming() || b.value("kubelet_evented_pleg_connection_success_count") != 1 ||
		b.value("kubelet_evented_pleg_connection_latency_seconds") == 0 {
		t.Error("the runtime's events were not listened to")
	}
	runtime.Disconnect()
	b.eventually("the stream to be noticed as gone", func() bool { return b.value("kubelet_evented_pleg_connection_error_count") == 1 })
	b.eventually("the stream to be open again", func() bool { return runtime.Listeners() == 1 })
	for _, name := range []string{"web", "job", "failing"} {
		b.delete(name)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
	b.waitEmpty()
	var lease struct{ metav1.ObjectMeta }
	b.eventually("a heartbeat", func() bool {
		return b.api.object("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1", &lease)
	})
}

// Without init containers that end, a hollow pod would never run.
func TestHollowInitContainers(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	prepared := hollowPod("prepared", nil)
	sidecar := *prepared.Spec.Containers[0].DeepCopy()
	sidecar.Name, sidecar.RestartPolicy = "sidecar", new(corev1.ContainerRestartPolicyAlways)
	first, last := *prepared.Spec.Containers[0].DeepCopy(), *prepared.Spec.Containers[0].DeepCopy()
	first.Name, last.Name, first.ReadinessProbe, last.ReadinessProbe = "first", "last", nil, nil
	prepared.Spec.InitContainers = []core.Container{first, sidecar, last}
	b.create(prepared)
	if pod := b.waitPhase("prepared", corev1.PodRunning); pod.Status.InitContainerStatuses[1].State.Running == nil ||
		pod.Status.InitContainerStatuses[2].State.Terminated == nil {
		t.Errorf("init containers: %+v", pod.Status.InitContainerStatuses)
	}
	b.delete("prepared")
	b.api.wait("prepared to be gone", func() bool { return b.api.pod("prepared") == nil })
}

// If somebody overwrites a pod's status in the API, with or without changing
// the pod, the status is corrected; a static pod's is that of its mirror.
func TestAStatusThatIsOverwritten(t *testing.T) {
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.Sources.StaticPodPath = t.TempDir()
		if err := os.WriteFile(filepath.Join(c.Sources.StaticPodPath, "static.json"), []byte(staticManifest), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	b.create(hollowPod("web", nil))
	for _, name := range []string{"web", "static-node-1"} {
		b.waitPhase(name, corev1.PodRunning)
		for i := range 10 {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}},"status":{"phase":"Unknown"}}`, i)
			var patched core.Pod
			if err := b.client.Resource(core.Pods, "default").Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), &patched); err != nil ||
				patched.Status.Phase != corev1.PodUnknown {
				t.Fatalf("%s: %s, %v", name, patched.Status.Phase, err)
			}
			b.waitPhase(name, corev1.PodRunning)
		}
	}
}

// steppedClock stands still until it is stepped, and yet no two readings of it are equal, as
// with a monotonic clock: what was read before something happened is older than that.
type steppedClock struct {
	*clocktesting.FakeClock
	reading sync.Mutex
}

func (c *steppedClock) Now() time.Time {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.Step(time.Nanosecond)
	return c.FakeClock.Now()
}

// Hours of a pod's life pass in a test by the clock that a kubelet is given.
func TestADeadlineOfHours(t *testing.T) {
	passing := &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Now())}
	b, _ := newHollowBed(t, nil, func(o *simulated.Options) { o.Clock = passing })
	pod := hollowPod("limited", nil)
	pod.Spec.ActiveDeadlineSeconds = new(int64(3 * 60 * 60))
	b.create(pod)
	begun := passing.Now()
	ends := func(phase corev1.PodPhase, step time.Duration) {
		b.eventually("the pod to be "+string(phase), func() bool {
			passing.Step(step)
			return b.phase("limited") == phase
		})
	}
	ends(corev1.PodRunning, time.Second)
	ends(corev1.PodFailed, 2*time.Minute)
	if status := b.api.pod("limited").Status; status.Reason != "DeadlineExceeded" {
		t.Errorf("it failed for %q", status.Reason)
	}
	if took := passing.Since(begun); took < 3*time.Hour {
		t.Errorf("it failed after %v", took)
	}
	b.deleteWithin("limited", 1)
	b.eventually("nothing of the pod to be left", func() bool { // what is retried waits for the clock, too
		passing.Step(time.Second)
		return b.api.pod("limited") == nil && len(b.left()) == 0
	})
}
