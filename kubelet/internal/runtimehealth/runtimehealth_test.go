package runtimehealth

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// What changes is whether pods can be worked on. A reason that is another one each time would
// have the node's status sent several times a second; one of megabytes, not at all.
func TestChanges(t *testing.T) {
	var network *runtimeapi.RuntimeCondition // nil if it works
	runtime := simulated.New(simulated.Options{Clock: clock.RealClock{}, Lie: func(_ string, answer proto.Message) {
		if a, ok := answer.(*runtimeapi.StatusResponse); ok && network != nil {
			a.Status.Conditions[1] = network
		}
	}})
	changes := 0
	h := New(cri.NewOver(runtime.Connection(), cri.Options{}), func() { changes++ }, clock.RealClock{}, zap.NewNop())
	for i, step := range []struct {
		message string // why the network does not work; "" if it does
		changes int
	}{{"", 1}, {"", 1}, {"no plugin", 2}, {"still no plugin", 2}, {strings.Repeat("x", 1<<20), 2}, {"", 3}} {
		if network = nil; step.message != "" {
			network = &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Message: step.message}
		}
		h.look(t.Context())
		text := fmt.Sprint(h.NetworkError())
		if changes != step.changes || (h.NetworkError() == nil) != (step.message == "") || len(text) > 5000 {
			t.Errorf("step %d: %d changes, want %d; network error %.200s", i, changes, step.changes, text)
		}
		if step.message != "" && len(step.message) < 100 && !strings.HasSuffix(text, "message:"+step.message) {
			t.Errorf("step %d: the newest reason is not told: %s", i, text)
		}
	}
}

func TestImageVolumesNeedANewRuntime(t *testing.T) {
	pod := &core.Pod{Spec: core.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "models", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "i"}}},
	}}}
	for runtime, fine := range map[string]bool{
		"containerd://1.6.20~ds1": false, "containerd://2.0.5": false, "containerd://2.1.0-rc.1": true, "containerd://v2.4.2": true,
		"cri-o://1.30.1": false, "cri-o://1.33.0": true, "other://1.0": true, "containerd://devel": true, "": true,
	} {
		err := checkImageVolumes(pod, runtime)
		if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), `volume "models": image volumes are not supported by the container runtime`) {
			t.Errorf("%s: %v", runtime, err)
		}
		if err := checkImageVolumes(&core.Pod{}, runtime); err != nil {
			t.Errorf("%s without volumes: %v", runtime, err)
		}
	}
}
