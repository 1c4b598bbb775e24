package preemption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/events"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/waitingpods"
)

// server records its requests, and fails when told to.
type server struct {
	mu    sync.Mutex
	lines []string
	fails []error // of the next requests
	left  []types.UID
	// teller is the scheduler that told of the last eviction.
	teller string
}

func (s *server) note(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
	if len(s.fails) == 0 {
		return nil
	}
	err := s.fails[0]
	s.fails = s.fails[1:]
	return err
}

func (s *server) PatchPodStatus(_ context.Context, namespace, name string, patch []byte) error {
	var p struct {
		Metadata struct{ UID types.UID }
		Status   struct{ Conditions []core.PodCondition }
	}
	if err := json.Unmarshal(patch, &p); err != nil || len(p.Status.Conditions) != 1 {
		return fmt.Errorf("%s: %w", patch, err)
	}
	c := p.Status.Conditions[0]
	return s.note("patch %s/%s %s %s=%s %s: %s", namespace, name, p.Metadata.UID, c.Type, c.Status, c.Reason, c.Message)
}

func (s *server) DeletePod(_ context.Context, pod *core.Pod) error {
	return s.note("delete %s %s", pod.Name, pod.UID)
}

func (s *server) Eventf(obj runtime.Object, _, reason, format string, args ...any) {
	_ = s.note("event %s %s: %s", obj.(*core.Pod).Name, reason, fmt.Sprintf(format, args...))
}

// sink notes whose events they are.
func (s *server) sink(preemptor *core.Pod) events.Sink {
	s.teller = preemptor.Spec.SchedulerName
	return s
}

func (s *server) Left(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, uid)
}

func TestEvict(t *testing.T) {
	resource := core.Pods.GVR().GroupResource()
	const (
		told    = "event low Preempted: Preempted by pod high-uid on node n1"
		patched = "patch default/low low-uid DisruptionTarget=True PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod"
		deleted = "delete low low-uid"
	)
	for name, test := range map[string]struct {
		fails []error // from the event on
		want  []string
		left  int
	}{
		"as it should be": {want: []string{told, patched, deleted}},
		"server away":     {fails: []error{nil, errors.New("EOF")}, want: []string{told, patched, patched, deleted}},
		"answer got lost": {fails: []error{nil, nil, errors.New("EOF"), apierrors.NewNotFound(resource, "low")}, want: []string{told, patched, deleted, patched},
			left: 1},
		"another by now": {fails: []error{nil, apierrors.NewConflict(resource, "low", errors.New("uid"))}, want: []string{told, patched}, left: 1},
		"forbidden for good": {fails: slices.Repeat([]error{apierrors.NewForbidden(resource, "low", nil)}, 6),
			want: append([]string{told}, slices.Repeat([]string{patched}, 5)...), left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{fails: test.fails}
				e := New(Options{API: s, Nominator: s, WaitingPods: waitingpods.New(clock.RealClock{}), Events: s.sink, Clock: clock.RealClock{}, Logger: zap.NewNop()})
				low, high := fixture.Pod("low"), fixture.Pod("high")
				low.Spec.SchedulerName = "another"
				low.UID, high.UID = "low-uid", "high-uid"
				e.Evict(high, []*core.Pod{low}, "n1")
				ctx, cancel := context.WithTimeout(t.Context(), 10*retry.Max)
				defer cancel()
				if err := e.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("ended with %v", err)
				}
				if s.teller != core.DefaultSchedulerName {
					t.Errorf("the preemptor's scheduler tells nobody, but %q", s.teller)
				}
				if !slices.Equal(s.lines, test.want) || len(s.left) != test.left {
					t.Errorf("asked %q, left alone %v\nwant  %q, %d", s.lines, s.left, test.want, test.left)
				}
			})
		})
	}
}

// A pod that is not bound yet gives up its resources without ending.
func TestEvictOfAPodThatWaitsToBePermitted(t *testing.T) {
	s, waiting := &server{}, waitingpods.New(clock.RealClock{})
	low := fixture.Pod("low")
	pod := waiting.Add(low, "n1", map[string]time.Duration{"A": time.Minute})
	high := fixture.Pod("high")
	told := []string{fmt.Sprintf("event low Preempted: Preempted by pod %s on node n1 (in kube-scheduler memory).", high.UID)}
	New(Options{API: s, Nominator: s, WaitingPods: waiting, Events: s.sink, Clock: clock.RealClock{}, Logger: zap.NewNop()}).Evict(high, []*core.Pod{low}, "n1")
	if status := pod.Wait(t.Context()); status.Message() != "preempted" || !slices.Equal(s.lines, told) || len(s.left) != 1 {
		t.Errorf("ended with %v; asked %q; left %v", status, s.lines, s.left)
	}
}

// Nor does one whose PreBind plugins still run; once they have ended, it is about to be
// bound, and has to be deleted.
func TestEvictOfAPodInPreBind(t *testing.T) {
	s, waiting := &server{}, waitingpods.New(clock.RealClock{})
	low, high := fixture.Pod("low"), fixture.Pod("high")
	executor := New(Options{API: s, Nominator: s, WaitingPods: waiting, Events: s.sink, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	during, end := waiting.PreBind(t.Context(), low.UID)
	executor.Evict(high, []*core.Pod{low}, "n1")
	executor.Evict(high, []*core.Pod{low}, "n1") // the plugins may take a while to end
	if err := end(); err == nil || err.Error() != "preempted by DefaultPreemption" || during.Err() == nil || len(s.left) != 2 || len(executor.waiting) != 0 {
		t.Errorf("ended with %v, %v; asked %q; left %v", err, during.Err(), s.lines, s.left)
	}
	_, end = waiting.PreBind(t.Context(), low.UID)
	if err := end(); err != nil {
		t.Error(err)
	}
	executor.Evict(high, []*core.Pod{low}, "n1")
	if len(s.left) != 2 || len(executor.waiting) != 1 {
		t.Errorf("left %v, %d to be deleted", s.left, len(executor.waiting))
	}
}

// More pods than can be remembered are left alone, and may be chosen again.
func TestEvictIsBounded(t *testing.T) {
	s := &server{}
	e := New(Options{API: s, Nominator: s, WaitingPods: waitingpods.New(clock.RealClock{}), Events: s.sink, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	victims := make([]*core.Pod, maxWaiting+3)
	for i := range victims {
		victims[i] = fixture.Pod(fmt.Sprint("low-", i), func(p *core.Pod) { p.Spec.NodeName = "n" })
	}
	e.Evict(fixture.Pod("high"), victims, "n")
	if len(s.left) != 3 || s.left[0] != victims[maxWaiting].UID {
		t.Errorf("left alone: %v", s.left)
	}
}
