package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

// server applies patches to one pod as the API does, conflicts included.
type server struct {
	mu      sync.Mutex
	pod     *core.Pod
	patches []core.PodCondition
	events  []string
	fail    error
}

func (s *server) Pod(context.Context, string, string) (*core.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pod.DeepCopy(), nil
}

func (s *server) PatchPodStatus(_ context.Context, _, _ string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var patch struct {
		Metadata struct{ UID, ResourceVersion string }
		Status   struct{ Conditions []core.PodCondition }
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		return err
	}
	if s.fail != nil {
		return s.fail
	}
	if patch.Metadata.UID != string(s.pod.UID) || patch.Metadata.ResourceVersion != s.pod.ResourceVersion {
		return apierrors.NewConflict(core.Pods.GVR().GroupResource(), s.pod.Name, errors.New("stale"))
	}
	s.patches = append(s.patches, patch.Status.Conditions...)
	return nil
}

func (s *server) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	s.events = append(s.events, reason+": "+fmt.Sprintf(format, args...))
}

func (s *server) Laterf(obj runtime.Object, eventType, reason, format string, args ...any) {
	s.Eventf(obj, eventType, reason, format, args...)
}

func fitError() error {
	fit := framework.NewFitError(1)
	fit.Refuse(framework.NewStatus(framework.Unschedulable, "Insufficient cpu"), 1)
	return fit
}

// run runs a reporter while report is called, and waits until it is idle.
func run(t *testing.T, s *server, report func(r *Reporter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := New(s, s, clock.RealClock{}, zap.NewNop())
		report(r)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = r.Run(ctx)
		}()
		synctest.Wait()
		cancel()
		<-done
	})
}

func TestWhatIsSaid(t *testing.T) {
	pod := fixture.Pod("p")
	gated := pod.DeepCopy()
	fixture.Gate("g")(gated)
	for name, test := range map[string]struct {
		report    func(r *Reporter)
		event     string
		condition string // its reason
	}{
		"scheduled": {func(r *Reporter) { r.Scheduled(pod, "n1") }, "Scheduled: Successfully assigned default/p to n1", ""},
		"unschedulable": {func(r *Reporter) { r.Unscheduled(pod, fitError(), "") }, "FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu.",
			corev1.PodReasonUnschedulable},
		"no nodes": {func(r *Reporter) { r.Unscheduled(pod, framework.ErrNoNodes, "") }, "FailedScheduling: no nodes available to schedule pods",
			corev1.PodReasonUnschedulable},
		"error":    {func(r *Reporter) { r.Unscheduled(pod, errors.New("50% broken"), "") }, "FailedScheduling: 50% broken", corev1.PodReasonSchedulerError},
		"gated":    {func(r *Reporter) { r.Gated(gated, nil) }, "", corev1.PodReasonSchedulingGated},
		"kept out": {func(r *Reporter) { r.Gated(pod, nil) }, "", ""},
		"failed, then scheduled": {func(r *Reporter) { r.Unscheduled(pod, fitError(), ""); r.Scheduled(pod, "n1") },
			"FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{pod: pod}
			run(t, s, test.report)
			if test.event != "" && (len(s.events) == 0 || s.events[0] != test.event) {
				t.Errorf("events %q, want %q", s.events, test.event)
			}
			reason := ""
			for _, c := range s.patches {
				reason = c.Reason
				if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
					t.Errorf("condition %+v", c)
				}
			}
			if reason != test.condition {
				t.Errorf("condition's reason %q, want %q", reason, test.condition)
			}
		})
	}
}

func TestConditionThatIsThereIsNotWrittenAgain(t *testing.T) {
	pod := fixture.Pod("p", func(p *core.Pod) {
		p.Status.Conditions = []core.PodCondition{{
			Type:    corev1.PodScheduled,
			Status:  corev1.ConditionFalse,
			Reason:  corev1.PodReasonUnschedulable,
			Message: fitError().Error(),
		}}
	})
	s := &server{pod: pod}
	run(t, s, func(r *Reporter) { r.Unscheduled(pod, fitError(), "") })
	if len(s.patches) != 0 {
		t.Errorf("written again: %+v", s.patches)
	}
}

func TestLateConditionMissesABoundPodAndReachesAChangedOne(t *testing.T) {
	seen := fixture.Pod("p", func(p *core.Pod) { p.ResourceVersion = "1" })
	for name, test := range map[string]struct {
		change  func(*core.Pod)
		written int
	}{
		"unchanged": {func(*core.Pod) {}, 1},
		"labelled":  {func(p *core.Pod) { p.ResourceVersion = "2" }, 1},
		"bound":     {func(p *core.Pod) { p.ResourceVersion, p.Spec.NodeName = "2", "n1" }, 0},
		"another":   {func(p *core.Pod) { p.ResourceVersion, p.UID = "2", "other" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stored := seen.DeepCopy()
			test.change(stored)
			s := &server{pod: stored}
			run(t, s, func(r *Reporter) { r.Unscheduled(seen, fitError(), "") })
			if len(s.patches) != test.written {
				t.Errorf("%d conditions written, want %d", len(s.patches), test.written)
			}
		})
	}
}

func TestOnlyTheLatestConditionIsSent(t *testing.T) {
	s := &server{pod: fixture.Pod("p")}
	run(t, s, func(r *Reporter) {
		for range 10 {
			r.Unscheduled(s.pod, fitError(), "")
		}
		r.Unscheduled(s.pod, errors.New("last"), "")
	})
	if len(s.patches) != 1 || s.patches[0].Message != "last" {
		t.Errorf("sent %+v", s.patches)
	}
}

func TestNominatedNode(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want string }{
		"promised":   {"", "n1", `"nominatedNodeName":"n1"`},
		"elsewhere":  {"n1", "n2", `"nominatedNodeName":"n2"`},
		"taken away": {"n1", "", `"nominatedNodeName":null`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := fixture.Pod("p", func(p *core.Pod) {
				p.Status.NominatedNodeName = test.before
				p.Status.Conditions = []core.PodCondition{{ // the same as before
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: fitError().Error(),
				}}
			})
			r := New(&server{}, nil, clock.RealClock{}, zap.NewNop())
			r.Unscheduled(pod, fitError(), test.now)
			p, more := r.next()
			body, err := p.encode()
			if !more || err != nil || !strings.Contains(string(body), test.want) {
				t.Errorf("%v %s %v, want %s", more, body, err, test.want)
			}
			r.Unscheduled(pod, fitError(), test.before)
			if p, more := r.next(); more {
				t.Errorf("nothing is new, but %+v is sent", p)
			}
		})
	}
	r, pod := New(&server{}, nil, clock.RealClock{}, zap.NewNop()), fixture.Pod("p")
	r.Nominated(pod, "n1")
	p, more := r.next()
	if body, err := p.encode(); !more || err != nil || !strings.Contains(string(body), `"status":{"nominatedNodeName":"n1"}`) {
		t.Errorf("%v %s %v, want the node alone", more, body, err)
	}
}
