package lifecycle

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// A predecessor without running containers blocks nothing, even if it can't be
// removed. One that runs and can't be ended does, and the pod reports why.
func TestADeadPredecessor(t *testing.T) {
	l, found := newLifecycle(t, func(_ context.Context, method string, call func() error) error {
		if strings.HasPrefix(method, "Stop") {
			return status.Error(codes.Unknown, "the runtime can't")
		}
		return call()
	})
	static := func(uid string) *core.Pod {
		return &core.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "static-node-1", UID: types.UID(uid), Annotations: map[string]string{core.ConfigSourceAnnotation: core.FileSource},
		}}
	}
	old := sandboxOf(t, found, static("old"))
	pod := static("new")
	begins := func() error { return l.endPredecessors(t.Context(), pod, &runtimestate.PodStatus{}) }
	if err := begins(); err != nil {
		t.Error("held up by a sandbox in which nothing runs:", err)
	}

	runs(t, found, old)
	if err := begins(); err == nil {
		t.Error("begins beside a predecessor that runs")
	}
	if events := l.Events.(*eventLog); !events.has("FailedKillPod: error killing the pod's predecessor: ") {
		t.Errorf("events %q", events.lines)
	}

	pod.Annotations[core.ConfigSourceAnnotation] = core.HTTPSource
	if err := begins(); err != nil {
		t.Error("held up by a pod of another source:", err)
	}
}
