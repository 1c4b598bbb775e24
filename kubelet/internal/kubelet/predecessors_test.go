package kubelet

import (
	"context"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// replacesStaticPod changes a manifest while neither the kubelet nor the API is
// there. The kubelet that comes then has the new pod begin after the old one's
// end, though it can't ask the API who else is wanted.
func (b *bed) replacesStaticPod(path string) {
	b.t.Helper()
	running := func() (ids []string) {
		containers, err := b.containerd.Client().ListContainers(b.t.Context(), &runtimeapi.ContainerFilter{
			State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, c := range containers {
			ids = append(ids, c.GetId())
		}
		return ids
	}
	before := running()
	b.stop()
	b.api.setAway(true)
	changed := strings.Replace(staticManifest, "exit 0", "exit 1", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.start()
	b.eventually("the changed static pod alone", func() bool {
		now := running()
		if len(now) > 1 {
			b.t.Fatalf("containers %v run beside each other; the one from before is %v", now, before)
		}
		return len(now) == 1 && now[0] != before[0]
	})
	b.api.setAway(false)
	b.api.wait("the mirror of the changed pod", func() bool { return b.api.pod("static-node-1") != nil })
}

// A predecessor of which nothing runs any more holds up nobody, though it can't be
// taken away; one that runs and can't be ended does, and the pod says why.
func TestADeadPredecessor(t *testing.T) {
	b, runtime := newHollowBed(t, nil, func(o *simulated.Options) {
		o.Fault = func(_ context.Context, method string, call func() error) error {
			if strings.HasPrefix(method, "Stop") && t.Context().Err() == nil {
				return status.Error(codes.Unknown, "the runtime can't")
			}
			return call()
		}
	})
	old := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "static-node-1", Namespace: "default", Uid: "old"},
		Labels: map[string]string{
			kubelettypes.KubernetesPodNameLabel: "static-node-1", kubelettypes.KubernetesPodNamespaceLabel: "default", kubelettypes.KubernetesPodUIDLabel: "old",
		},
		Annotations: map[string]string{core.ConfigSourceAnnotation: core.FileSource},
	}
	sandbox, err := runtime.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: old})
	if err != nil {
		t.Fatal(err)
	}
	pod := hollowPod("static-node-1", nil)
	pod.UID, pod.Annotations = "new", map[string]string{core.ConfigSourceAnnotation: core.FileSource}
	begins := func() error { return b.kubelet.endPredecessors(t.Context(), pod, &runtimestate.PodStatus{}) }
	if err := begins(); err != nil {
		t.Error("held up by a sandbox in which nothing runs:", err)
	}
	image := &runtimeapi.ImageSpec{Image: "registry.example/a:1"}
	if _, err := runtime.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: image}); err != nil {
		t.Fatal(err)
	}
	container, err := runtime.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: old,
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Labels: old.Labels, Image: image},
	})
	if err == nil {
		_, err = runtime.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := begins(); err == nil {
		t.Error("begins beside a predecessor that runs")
	}
	b.waitEvent("static-node-1", "FailedKillPod", "error killing the pod's predecessor: ")
	pod.Annotations[core.ConfigSourceAnnotation] = core.HTTPSource
	if err := begins(); err != nil {
		t.Error("held up by a pod of another source:", err)
	}
}
