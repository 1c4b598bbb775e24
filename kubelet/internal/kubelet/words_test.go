package kubelet

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// messages are what was told of the pod for that reason.
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

// A pod that is refused says since when, and that it was refused; its event says why.
func TestWhatIsToldOfARefusedPod(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	big := hollowPod("big", nil)
	big.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1M")}
	b.create(big)
	if s := b.waitPhase("big", corev1.PodFailed).Status; s.StartTime == nil || !strings.HasPrefix(s.Message, "Pod was rejected: Node didn't have enough resource: cpu") {
		t.Errorf("%+v", s)
	}
	b.waitEvent("big", "OutOfcpu", "Node didn't have enough resource: cpu")
	if all := b.messages("big", "OutOfcpu"); len(all) != 1 || !strings.HasPrefix(all[0], "Node didn't") {
		t.Errorf("events %q", all)
	}
}

// Of a pull secret that is not there users hear where that may be why there is no
// image, and in the words of the runtime what else may be.
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
