package eventhandlers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/waitingpods"
)

const theirs = "another-scheduler"

// log records the handlers' calls, and counts as the cache does.
type log struct {
	lines []string
	names map[types.UID]string
	known map[types.UID]bool
}

func (l *log) note(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) Add(_ context.Context, pod *core.Pod)                   { l.note("queue add %s", pod.Name) }
func (l *log) Delete(uid types.UID)                                   { l.note("queue delete %s", l.names[uid]) }
func (l *log) MoveAllToActiveOrBackoffQueue(e framework.ClusterEvent) { l.note("event %s", e.Label()) }
func (l *log) SetImages(string, []corev1.ContainerImage)              {}
func (l *log) SetNode(n *core.Node)                                   { l.note("cache node %s", n.Name) }
func (l *log) RemoveNode(name string)                                 { l.note("cache without node %s", name) }

func (l *log) SetPod(pod *core.Pod) {
	l.known[pod.UID] = true
	l.note("cache pod %s on %s", pod.Name, pod.Spec.NodeName)
}

func (l *log) Responsible(pod *core.Pod) bool { return pod.Spec.SchedulerName != theirs }

func (l *log) Has(uid types.UID) bool { return l.known[uid] }

func (l *log) RemovePod(uid types.UID) bool {
	known := l.known[uid]
	delete(l.known, uid)
	l.note("cache without pod %s", l.names[uid])
	return known
}

func changed(pod *core.Pod, changes ...func(*core.Pod)) *core.Pod {
	pod = pod.DeepCopy()
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func phase(p corev1.PodPhase) func(*core.Pod) { return func(pod *core.Pod) { pod.Status.Phase = p } }

func deleting(pod *core.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now }

func TestPods(t *testing.T) {
	waiting := fixture.Pod("p", fixture.Requests("cpu", "2"))
	assigned := changed(waiting, fixture.On("n1"))
	another := changed(waiting, func(pod *core.Pod) { pod.Spec.SchedulerName = theirs })
	for name, test := range map[string]struct {
		before *core.Pod // nil if it is new
		event  watch.Type
		pod    *core.Pod
		want   []string
	}{
		"new, waiting":       {nil, watch.Added, waiting, []string{"queue add p"}},
		"new, another's":     {nil, watch.Added, another, nil},
		"another's, changed": {another, watch.Modified, changed(another, phase(corev1.PodPending)), nil},
		"another's, bound":   {another, watch.Modified, changed(another, fixture.On("n1")), []string{"cache pod p on n1", "queue delete p", "event AssignedPodAdd"}},
		"new, assigned":      {nil, watch.Added, assigned, []string{"cache pod p on n1", "queue delete p", "event AssignedPodAdd"}},
		"new, ended":         {nil, watch.Added, changed(assigned, phase(corev1.PodSucceeded)), nil},
		"new, being deleted": {nil, watch.Added, changed(waiting, deleting), nil},
		"waiting, changed":   {waiting, watch.Modified, changed(waiting, phase(corev1.PodPending)), []string{"queue add p"}},
		"waiting, deleting":  {waiting, watch.Modified, changed(waiting, deleting), []string{"queue delete p"}},
		"bound":              {waiting, watch.Modified, assigned, []string{"cache pod p on n1", "queue delete p", "event AssignedPodAdd"}},
		"kubelet's report":   {assigned, watch.Modified, changed(assigned, phase(corev1.PodRunning)), nil},
		"began to run": {assigned, watch.Modified, changed(assigned, func(p *core.Pod) { p.Status.StartTime = &metav1.Time{Time: time.Unix(1, 0)} }),
			[]string{"cache pod p on n1"}},
		"shrunk": {assigned, watch.Modified, changed(assigned, fixture.Requests("cpu", "1")),
			[]string{"cache pod p on n1", "event AssignedPodUpdatePodScaleDown"}},
		"grown": {assigned, watch.Modified, changed(assigned, fixture.Requests("cpu", "3")), []string{"cache pod p on n1"}},
		"ended": {assigned, watch.Modified, changed(assigned, phase(corev1.PodFailed)),
			[]string{"queue delete p", "cache without pod p", "event AssignedPodDelete"}},
		"assigned, deleted":   {assigned, watch.Deleted, assigned, []string{"queue delete p", "cache without pod p", "event AssignedPodDelete"}},
		"waiting, deleted":    {waiting, watch.Deleted, waiting, []string{"queue delete p", "cache without pod p"}},
		"terminating on node": {assigned, watch.Modified, changed(assigned, deleting), []string{"cache pod p on n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{names: map[types.UID]string{waiting.UID: "p"}, known: map[types.UID]bool{}}
			sink := New(t.Context(), Slim, l, l, nominator.New(), waitingpods.New(clock.RealClock{})).Pods()
			if test.before != nil {
				sink.Apply(watch.Added, test.before.DeepCopy())
				l.lines = nil
			}
			sink.Apply(test.event, test.pod.DeepCopy())
			if !slices.Equal(l.lines, test.want) {
				t.Errorf("said %q, want %q", l.lines, test.want)
			}
		})
	}
}

func TestAPodThatTookTheNameOfAnother(t *testing.T) {
	old, replaced := fixture.Pod("p", fixture.On("n1")), fixture.Pod("p")
	old.ResourceVersion, replaced.ResourceVersion = "1", "3"
	l := &log{names: map[types.UID]string{old.UID: "old", replaced.UID: "new"}, known: map[types.UID]bool{}}
	sink := New(t.Context(), Slim, l, l, nominator.New(), waitingpods.New(clock.RealClock{})).Pods()
	sink.Apply(watch.Added, old)
	l.lines = nil
	sink.Replace([]*core.Pod{replaced}) // seen after a gap in the watch
	if want := []string{"queue delete old", "cache without pod old", "event AssignedPodDelete", "queue add p"}; !slices.Equal(l.lines, want) {
		t.Errorf("said %q, want %q", l.lines, want)
	}
}

func TestNodes(t *testing.T) {
	node := fixture.Node("n1")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	with := func(changes ...func(*core.Node)) *core.Node {
		n := node.DeepCopy()
		for _, change := range changes {
			change(n)
		}
		return n
	}
	for name, test := range map[string]struct {
		event watch.Type
		node  *core.Node
		want  []string
	}{
		"heartbeat":   {watch.Modified, with(func(n *core.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }), nil},
		"label":       {watch.Modified, with(fixture.Label("a", "b")), []string{"cache node n1", "event NodeUpdateNodeLabel"}},
		"taint":       {watch.Modified, with(fixture.Taint("a", "b", corev1.TaintEffectNoSchedule)), []string{"cache node n1", "event NodeUpdateNodeTaint"}},
		"cordon":      {watch.Modified, with(func(n *core.Node) { n.Spec.Unschedulable = true }), []string{"cache node n1", "event NodeUpdateNodeTaint"}},
		"allocatable": {watch.Modified, with(fixture.Allocatable("cpu", "8")), []string{"cache node n1", "event NodeUpdateNodeAllocatable"}},
		"deleted":     {watch.Deleted, node, []string{"cache without node n1", "event NodeDelete"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{}
			sink := New(t.Context(), Slim, l, l, nominator.New(), waitingpods.New(clock.RealClock{})).Nodes()
			sink.Apply(watch.Added, node.DeepCopy())
			if want := []string{"cache node n1", "event NodeAdd"}; !slices.Equal(l.lines, want) {
				t.Errorf("said of a new node %q, want %q", l.lines, want)
			}
			l.lines = nil
			sink.Apply(test.event, test.node.DeepCopy())
			if !slices.Equal(l.lines, test.want) {
				t.Errorf("said %q, want %q", l.lines, test.want)
			}
		})
	}
}

// A nomination that is removed, in whatever way, frees resources for waiting
// pods.
func TestNominations(t *testing.T) {
	nominated := func(node string) func(*core.Pod) {
		return func(pod *core.Pod) { pod.Status.NominatedNodeName = node }
	}
	for name, test := range map[string]struct {
		then      func(sink watch.Sink[*core.Pod], pod *core.Pod)
		nominated string
		released  bool
	}{
		"as it was":         {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Modified, changed(p, fixture.Priority(7))) }, "n1", false},
		"another node":      {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Modified, changed(p, nominated("n2"))) }, "n2", true},
		"none any more":     {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Modified, changed(p, nominated(""))) }, "", true},
		"it came":           {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Modified, changed(p, fixture.On("n1"))) }, "", false},
		"it went elsewhere": {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Modified, changed(p, fixture.On("n2"))) }, "", true},
		"it is being ended": {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Modified, changed(p, deleting)) }, "", true},
		"it ended by itself": {func(s watch.Sink[*core.Pod], p *core.Pod) {
			s.Apply(watch.Modified, changed(p, phase(corev1.PodFailed)))
		}, "", true},
		"it is gone": {func(s watch.Sink[*core.Pod], p *core.Pod) { s.Apply(watch.Deleted, p) }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{names: map[types.UID]string{}, known: map[types.UID]bool{}}
			nominations := nominator.New()
			nominations.OnRelease(func(pod *core.Pod) {
				l.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: pod})
			})
			sink := New(t.Context(), Slim, l, l, nominations, waitingpods.New(clock.RealClock{})).Pods()
			pod := fixture.Pod("p", nominated("n1"))
			sink.Apply(watch.Added, pod)
			if nominations.Of(pod.UID) != "n1" {
				t.Fatalf("nominated %q at first", nominations.Of(pod.UID))
			}
			l.lines = nil
			test.then(sink, pod)
			event := framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete}
			if released := slices.Contains(l.lines, "event "+event.Label()); nominations.Of(pod.UID) != test.nominated || released != test.released {
				t.Errorf("nominated %q, released %v: %q", nominations.Of(pod.UID), released, l.lines)
			}
		})
	}
}

// Nobody knows whether another scheduler's pod still wants the room.
func TestNominationsByAnotherScheduler(t *testing.T) {
	l := &log{names: map[types.UID]string{}, known: map[types.UID]bool{}}
	nominations := nominator.New()
	sink := New(t.Context(), Slim, l, l, nominations, waitingpods.New(clock.RealClock{})).Pods()
	pod := fixture.Pod("p", func(pod *core.Pod) { pod.Spec.SchedulerName, pod.Status.NominatedNodeName = theirs, "n1" })
	sink.Apply(watch.Added, pod)
	added := nominations.Of(pod.UID)
	sink.Apply(watch.Modified, changed(pod, func(pod *core.Pod) { pod.Status.NominatedNodeName = "n2" }))
	if updated := nominations.Of(pod.UID); added != "" || updated != "" {
		t.Errorf("room is kept on %q and then on %q", added, updated)
	}
}

// A pod that an extender only said to have bound is scheduled again when it no longer
// counts; one that has a node by now, is being deleted, or is gone, is not.
func TestExpiredPodIsScheduledAgain(t *testing.T) {
	assumed := fixture.Pod("p")
	for name, test := range map[string]struct {
		stored *core.Pod // nil for none
		again  bool
	}{
		"without a node": {assumed, true},
		"bound":          {changed(assumed, fixture.On("n1")), false},
		"being deleted":  {changed(assumed, deleting), false},
		"ended":          {changed(assumed, phase(corev1.PodFailed)), false},
		"gone":           {nil, false},
		"another":        {fixture.Pod("p"), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{names: map[types.UID]string{}, known: map[types.UID]bool{}}
			h := New(t.Context(), Slim, l, l, nominator.New(), waitingpods.New(clock.RealClock{}))
			if test.stored != nil {
				h.Pods().Apply(watch.Added, test.stored)
			}
			l.lines = nil
			h.OnExpired(assumed)
			want := []string{"event AssignedPodDelete"}
			if test.again {
				want = append(want, "queue add p")
			}
			if !slices.Equal(l.lines, want) {
				t.Errorf("%q, want %q", l.lines, want)
			}
		})
	}
}

// slowQueue is a queue to which something happens before a pod is added.
type slowQueue struct {
	*log
	before func()
}

func (q *slowQueue) Add(_ context.Context, pod *core.Pod) {
	if before := q.before; before != nil {
		before()
	}
	q.note("queue add %s %v", q.names[pod.UID], pod.Labels)
}

// What the watch tells of an expired pod in the moment in which it is put back counts:
// the queue would keep a pod for ever that is gone.
func TestExpiredPodThatChangesMeanwhile(t *testing.T) {
	assumed := fixture.Pod("p")
	labelled := func(pod *core.Pod) { pod.Labels = map[string]string{"a": "b"} }
	for name, test := range map[string]struct {
		event watch.Type
		pod   *core.Pod
		want  string // the last that the queue is told of the expired pod
	}{
		"nothing":       {},
		"gone":          {watch.Deleted, assumed, "queue delete p"},
		"bound":         {watch.Modified, changed(assumed, fixture.On("n1")), "queue delete p"},
		"being deleted": {watch.Modified, changed(assumed, deleting), "queue delete p"},
		"changed":       {watch.Modified, changed(assumed, labelled), "queue add p map[a:b]"},
		"another":       {watch.Modified, fixture.Pod("p"), "queue delete p"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{names: map[types.UID]string{assumed.UID: "p"}, known: map[types.UID]bool{}}
			q := &slowQueue{log: l}
			h := New(t.Context(), Slim, q, l, nominator.New(), waitingpods.New(clock.RealClock{}))
			sink := h.Pods()
			sink.Apply(watch.Added, assumed)
			l.lines = nil
			q.before = func() {
				q.before = nil
				if test.pod != nil {
					sink.Apply(test.event, test.pod)
				}
			}
			h.OnExpired(assumed)
			last := ""
			for _, line := range l.lines {
				if strings.HasPrefix(line, "queue ") && strings.Contains(line, " p") {
					last = line
				}
			}
			if want := cmp.Or(test.want, "queue add p map[]"); last != want {
				t.Errorf("%q, want %q at last", l.lines, want)
			}
		})
	}
}

// A node that took the name of another keeps its images: what is forgotten of its
// predecessor is so before.
func TestANodeThatTookTheNameOfAnother(t *testing.T) {
	node := func(uid, revision string) *core.Node {
		n := fixture.Node("n1")
		n.UID, n.ResourceVersion = types.UID(uid), revision
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"demo"}}}
		return n
	}
	for name, replace := range map[string]func(watch.Sink[*core.Node]){
		"on a watch": func(s watch.Sink[*core.Node]) { s.Apply(watch.Added, node("2", "5")) },
		"in a list":  func(s watch.Sink[*core.Node]) { s.Replace([]*core.Node{node("2", "5")}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := &imageLog{}
			sink := New(t.Context(), Slim, l, l, nominator.New(), waitingpods.New(clock.RealClock{})).Nodes()
			sink.Apply(watch.Added, node("1", "3"))
			l.lines = nil
			replace(sink)
			if want := []string{"cache without node n1", "event NodeDelete", "images of n1: 1", "cache node n1", "event NodeAdd"}; !slices.Equal(l.lines, want) {
				t.Errorf("said %q, want %q", l.lines, want)
			}
		})
	}
}
