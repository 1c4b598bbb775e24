package runtimestate

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/simulated"
)

func TestPod(t *testing.T) {
	runtime := cri.NewOver(simulated.New(simulated.Options{Clock: clock.RealClock{}}).Connection(), cri.Options{})
	for _, name := range []string{"a", "b", "c"} {
		labels := map[string]string{kubelettypes.KubernetesPodUIDLabel: "uid-" + name, kubelettypes.KubernetesPodNameLabel: name}
		if name == "c" {
			labels = nil // of somebody else
		}
		_, err := runtime.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "ns", Uid: "uid-" + name}, Labels: labels,
		}, "")
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := NewReader(t.Context(), runtime, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if pod, err := r.Pod(t.Context(), "uid-b"); err != nil || pod == nil || pod.Name != "b" || len(pod.Sandboxes) != 1 || pod.Sandboxes[0].State != StateRunning {
		t.Errorf("pod b: %+v, %v", pod, err)
	}
	if pod, err := r.Pod(t.Context(), "uid-c"); err != nil || pod != nil {
		t.Errorf("a pod of which the runtime has nothing: %+v, %v", pod, err)
	}
	if pods, err := r.Pods(t.Context()); err != nil || len(pods) != 2 || pods[0].UID != "uid-a" || pods[1].UID != "uid-b" {
		t.Errorf("pods: %+v, %v", pods, err)
	}
}
