package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// messages are the pod's events with that reason.
func (b *bed) messages(pod, reason string) (all []string) {
	b.t.Helper()
	var events corev1.EventList
	if err := b.client.Resource(core.Events, "default").List(b.t.Context(), &events); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == pod && e.Reason == reason {
			all = append(all, e.Message)
		}
	}
	return all
}

// A refused pod's status says when it was refused, and its event says why.
func TestWhatIsToldOfARefusedPod(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	big := hollowPod("big", nil)
	big.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1M")}
	b.create(big)
	if s := b.waitPhase("big", corev1.PodFailed).Status; s.StartTime == nil ||
		!strings.HasPrefix(s.Message, "Pod was rejected: Node didn't have enough resource: cpu") {
		t.Errorf("%+v", s)
	}
	b.waitEvent("big", "OutOfcpu", "Node didn't have enough resource: cpu")
	if all := b.messages("big", "OutOfcpu"); len(all) != 1 || !strings.HasPrefix(all[0], "Node didn't") {
		t.Errorf("events %q", all)
	}
}

// restartRefusing restarts the kubelet, which finds that the pod belongs on another node.
func (b *bed) restartRefusing(pod string) {
	b.t.Helper()
	b.stop()
	elsewhere := []byte(`{"spec":{"nodeSelector":{"no":"such"}}}`)
	if err := b.client.Resource(core.Pods, "default").Patch(b.t.Context(), pod, types.MergePatchType, elsewhere, nil); err != nil {
		b.t.Fatal(err)
	}
	b.start()
	if s := b.waitPhase(pod, corev1.PodFailed).Status; s.Reason != "NodeAffinity" {
		b.t.Errorf("%+v", s)
	}
}

// waitNothingRuns waits until no container runs.
func (b *bed) waitNothingRuns() {
	b.t.Helper()
	b.api.wait("all containers to end", func() bool {
		containers, err := b.containerd.Client().ListContainers(b.t.Context(), nil)
		return err == nil && !slices.ContainsFunc(containers, func(c *runtimeapi.Container) bool { return c.State == runtimeapi.ContainerState_CONTAINER_RUNNING })
	})
}

// TestAPodThatMayRunNoMore: a pod that a restarted kubelet refuses fails and is
// ended, although it ran before.
func TestAPodThatMayRunNoMore(t *testing.T) {
	b := newBed(t)
	b.create(shellPod("web", forever))
	b.waitPhase("web", corev1.PodRunning)
	b.restartRefusing("web")
	b.waitNothingRuns()
}

// TestAPodThatMayBeginNoMore: so does one whose containers never ran, and its sandbox, which
// an earlier kubelet made, is ended with it.
func TestAPodThatMayBeginNoMore(t *testing.T) {
	b := newBed(t)
	pod := shellPod("web", forever)
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "kctl.local/nosuch", corev1.PullNever
	b.create(pod)
	ready := func() int {
		all, err := b.containerd.Client().ListPodSandbox(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, sandbox := range all {
			if sandbox.State == runtimeapi.PodSandboxState_SANDBOX_READY {
				count++
			}
		}
		return count
	}
	b.api.wait("the pod to wait for its image", func() bool {
		pod := b.api.pod("web")
		return pod != nil && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil && ready() == 1
	})
	b.restartRefusing("web")
	b.api.wait("its sandbox to end", func() bool { return ready() == 0 })
	for _, c := range b.api.pod("web").Status.ContainerStatuses {
		if c.State.Waiting != nil {
			t.Errorf("a container of a pod that has failed waits: %+v", c.State.Waiting)
		}
	}
}

// TestAStaticPodThatMayRunNoMore: a static pod has no status of an earlier kubelet, and its
// containers must not go on beside a node that counts them no more.
func TestAStaticPodThatMayRunNoMore(t *testing.T) {
	b := newBed(t)
	manifest := strings.Replace(staticManifest, `"name":"main"`, `"resources":{"requests":{"cpu":"100m"}},"name":"main"`, 1)
	if err := os.WriteFile(filepath.Join(b.config.Sources.StaticPodPath, "static.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	b.waitPhase("static-node-1", corev1.PodRunning)
	b.stop()
	machine, err := node.ReadMachine(b.config.RootDir)
	if err != nil {
		t.Fatal(err)
	}
	b.config.Allocatable.SystemReserved = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(1000*machine.CPUs-50, resource.DecimalSI)}
	b.start()
	b.waitEvent("static-node-1", "OutOfcpu", "Node didn't have enough resource: cpu")
	b.waitNothingRuns()
}

// A missing pull secret is reported if it may be why an image could not be
// pulled, together with the runtime's error, which may name another reason.
func TestMissingPullSecretsAreToldWithAPullThatFails(t *testing.T) {
	b, _ := newHollowBed(t, nil, func(o *simulated.Options) {
		o.Fault = func(ctx context.Context, method string, call func() error) error {
			if method == "PullImage" && t.Context().Err() == nil {
				return status.Error(codes.NotFound, "no such image")
			}
			return call()
		}
	})
	pod := hollowPod("web", nil)
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}
	b.create(pod)
	b.waitEvent("web", "FailedToRetrieveImagePullSecret", "image pull secrets (one, two);")
	b.waitEvent("web", "Failed", "rpc error: code = NotFound desc = no such image")
}

// Pull secrets, which may take time to fetch, don't hold up pods whose images
// are on the node.
func TestPullSecretsWaitForAPull(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("first", nil))
	b.waitPhase("first", corev1.PodRunning)
	pod := hollowPod("web", nil)
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "one"}}
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	b.create(pod)
	b.waitPhase("web", corev1.PodRunning)
	if b.api.wasRead("/api/v1/namespaces/default/secrets/one") {
		t.Error("a pull secret was asked for though nothing was pulled")
	}
}

// Memory in use is not taken away, and every limit below the usage is named.
func TestEveryLimitThatIsInUseIsNamed(t *testing.T) {
	b, _ := newHollowBed(t, nil) // every container uses 16Mi
	pod := hollowPod("web", nil)
	limit := func(memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	pod.Spec.Containers[0].Resources = limit("64Mi")
	for _, name := range []string{"second", "roomy"} {
		other := *pod.Spec.Containers[0].DeepCopy()
		other.Name = name
		pod.Spec.Containers = append(pod.Spec.Containers, other)
	}
	b.create(pod)
	b.waitPhase("web", corev1.PodRunning)
	patch := []byte(`{"metadata":{"generation":2},"spec":{"containers":[{"name":"main","resources":{"limits":{"memory":"8Mi"}}},
		{"name":"second","resources":{"limits":{"memory":"4Mi"}}},{"name":"roomy","resources":{"limits":{"memory":"32Mi"}}}]}}`)
	if err := b.client.Resource(core.Pods, "default").Patch(t.Context(), "web", types.StrategicMergePatchType, patch, nil); err != nil {
		t.Fatal(err)
	}
	const want = `cannot decrease memory limits: [attempting to set container "main" memory limit (8388608) below current usage (16777216), ` +
		`attempting to set container "second" memory limit (4194304) below current usage (16777216)]`
	b.api.wait("the pod to say why it is not resized", func() bool {
		c := condition(&b.api.pod("web").Status, corev1.PodResizeInProgress)
		return c != nil && c.Message == want
	})
	if actual, _ := b.kubelet.allocations.Actual(b.api.pod("web").UID, "roomy"); actual.Limits.Memory().String() != "64Mi" {
		t.Errorf("another container has %v", actual.Limits)
	}
}
