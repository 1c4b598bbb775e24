package admit

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// wish is the wish of a pod, which has 500m of the node's 2 cores, for more.
// since is the second from which it waits, as the API was told; 0 if it was not
// told.
func wish(name, wants string, priority int32, class corev1.PodQOSClass, since int64) ResizeRequest {
	made := func(cpu string) *core.Pod {
		p := pod(name, func(s *core.PodSpec) {
			s.Priority = &priority
			s.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		})
		p.Status.QOSClass = class
		if since > 0 {
			p.Status.Conditions = []core.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(time.Unix(since, 0))}}
		}
		return p
	}
	has := made("500m")
	if wants == "" {
		return ResizeRequest{has, has}
	}
	return ResizeRequest{has, made(wants)}
}

// If there is not enough for all waiting pods, the first in order get theirs.
func TestResizesByPriority(t *testing.T) {
	const burstable, guaranteed = corev1.PodQOSBurstable, corev1.PodQOSGuaranteed
	mine := wish("mine", "1", 5, burstable, 20)
	for _, c := range []struct {
		name   string
		pod    ResizeRequest
		others []ResizeRequest
		want   string // why it is not granted
	}{
		{"nobody else waits", mine, []ResizeRequest{wish("a", "", 9, guaranteed, 0), wish("b", "", 9, guaranteed, 0)}, ""},
		{"too large for the node", wish("mine", "3", 5, burstable, 20), nil, corev1.PodReasonInfeasible},
		{"no room", wish("mine", "1500m", 5, burstable, 20), []ResizeRequest{wish("a", "", 5, burstable, 0), wish("b", "", 5, burstable, 0)},
			corev1.PodReasonDeferred},
		{"one of a higher priority comes first", mine, []ResizeRequest{wish("a", "1", 9, burstable, 30), wish("b", "", 5, burstable, 0)}, corev1.PodReasonDeferred},
		{"one of a lower priority does not", mine, []ResizeRequest{wish("a", "1", 1, guaranteed, 10), wish("b", "", 5, burstable, 0)}, ""},
		{"a guaranteed one comes first", mine, []ResizeRequest{wish("a", "1", 5, guaranteed, 30), wish("b", "", 5, burstable, 0)}, corev1.PodReasonDeferred},
		{"one that waited longer comes first", mine, []ResizeRequest{wish("a", "1", 5, burstable, 10), wish("b", "", 5, burstable, 0)}, corev1.PodReasonDeferred},
		{"one that waits for less long does not", mine, []ResizeRequest{wish("a", "1", 5, burstable, 30), wish("b", "", 5, burstable, 0)}, ""},
		{"nor one that has just asked", mine, []ResizeRequest{wish("a", "1", 5, burstable, 0), wish("b", "", 5, burstable, 0)}, ""},
		{"who has just asked does not wait for another such", wish("mine", "1", 5, burstable, 0),
			[]ResizeRequest{wish("a", "1", 5, burstable, 0), wish("b", "", 5, burstable, 0)}, ""},
		{"one that fits in no case keeps nobody waiting", mine, []ResizeRequest{wish("a", "1500m", 9, guaranteed, 10), wish("b", "", 5, burstable, 0)}, ""},
		{"nor one for which there is room besides", mine, []ResizeRequest{wish("a", "1", 9, guaranteed, 10)}, ""},
		{"the second of two does not fit beside the first", wish("mine", "700m", 5, burstable, 20),
			[]ResizeRequest{wish("a", "900m", 7, burstable, 10), wish("b", "800m", 9, burstable, 10)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Resize(c.pod, c.others, node().Status.Allocatable)
			if got.Reason != c.want || got.Admitted != (c.want == "") {
				t.Errorf("got %+v, want reason %q", got, c.want)
			}
		})
	}
}
