package status

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

// Each end is counted once: not again as the last state of a restarted
// container, nor if an earlier kubelet has reported it to the API.
func TestEnded(t *testing.T) {
	end := func(id string, code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: "Error"}}
	}
	of := func(now, last corev1.ContainerState) []core.ContainerStatus {
		return []core.ContainerStatus{{Name: "main", State: now, LastTerminationState: last}}
	}
	runs, none := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ContainerState{}
	var told []string
	m := &Manager{options: Options{Ended: func(kind ContainerKind, how *corev1.ContainerStateTerminated) {
		told = append(told, fmt.Sprintf("%d%s %d", kind, how.ContainerID, how.ExitCode))
	}}}
	before := core.PodStatus{ContainerStatuses: of(runs, end("x://earlier", 1))}
	for _, step := range []struct {
		what   string
		status core.PodStatus
		want   []string
	}{
		{"an end that the API knows", core.PodStatus{ContainerStatuses: of(runs, end("x://earlier", 1))}, nil},
		{"an init container", core.PodStatus{InitContainerStatuses: of(end("x://init", 0), none), ContainerStatuses: of(runs, end("x://earlier", 1))},
			[]string{"1x://init 0"}},
		{"an end", core.PodStatus{InitContainerStatuses: of(end("x://init", 0), none), ContainerStatuses: of(end("x://a", 139), end("x://earlier", 1))},
			[]string{"0x://a 139"}},
		{"a start thereafter", core.PodStatus{ContainerStatuses: of(runs, end("x://a", 139))}, nil},
		{"two at once", core.PodStatus{ContainerStatuses: of(end("x://c", 3), end("x://b", 2)), EphemeralContainerStatuses: of(end("x://d", 0), none)},
			[]string{"0x://b 2", "0x://c 3", "2x://d 0"}},
		{"one that never ran", core.PodStatus{ContainerStatuses: of(end("", 128), none)}, nil},
	} {
		told = nil
		m.observeEnded(&before, &step.status)
		slices.Sort(told)
		if !slices.Equal(told, step.want) {
			t.Errorf("%s: told of %q, want %q", step.what, told, step.want)
		}
		before = step.status
	}
}

// mirrored are static pods, which the API has as their mirror, if there is one.
type mirrored struct{ mirror *core.Pod }

func (mirrored) ByUID(types.UID) (*core.Pod, bool) { return nil, false }
func (p mirrored) APIPod(*core.Pod) *core.Pod      { return p.mirror }

// What an earlier kubelet reported of a static pod is in its mirror.
func TestEndsOfStaticPodsAreToldOfOnce(t *testing.T) {
	ended := core.PodStatus{ContainerStatuses: []core.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "x://a", ExitCode: 1}},
	}}}
	for name, c := range map[string]struct {
		mirror *core.Pod
		want   int
	}{
		"its mirror knows of it":    {&core.Pod{Status: ended}, 0},
		"its mirror does not":       {&core.Pod{}, 1},
		"it has no mirror (as yet)": {nil, 1},
	} {
		told := 0
		m := NewManager(Options{
			Pods:   mirrored{c.mirror},
			Clock:  clock.RealClock{},
			Logger: zap.NewNop(),
			Ended:  func(ContainerKind, *corev1.ContainerStateTerminated) { told++ },
		})
		pod := &core.Pod{}
		for range 2 {
			m.Set(pod, ended)
		}
		if told != c.want {
			t.Errorf("%s: told %d times, want %d", name, told, c.want)
		}
	}
}
