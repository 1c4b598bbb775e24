package podworker

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// deletedPod is one that may still take so many seconds.
func deletedPod(grace int64) *core.Pod {
	pod := modelPod(0)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(1, 0)}, &grace
	return pod
}

func podIn(phase corev1.PodPhase) *core.Pod {
	pod := modelPod(0)
	pod.Status.Phase = phase
	return pod
}

func TestWhatEndsAPod(t *testing.T) {
	for name, c := range map[string]struct {
		update Update
		want   bool
	}{
		"a new pod":            {Update{Type: Create, Pod: podIn(corev1.PodPending)}, false},
		"a pod that runs":      {Update{Type: Change, Pod: podIn(corev1.PodRunning)}, false},
		"a pod that succeeded": {Update{Type: Create, Pod: podIn(corev1.PodSucceeded)}, true},
		"a pod that failed":    {Update{Type: Create, Pod: podIn(corev1.PodFailed)}, true},
		"a deleted pod":        {Update{Type: Change, Pod: deletedPod(5)}, true},
		"a kill":               {Update{Type: Kill, Pod: podIn(corev1.PodRunning)}, true},
		"the runtime's pod":    {Update{Type: Sync, Running: &Orphan{UID: "uid-0"}}, true},
	} {
		if got := ends(&c.update); got != c.want {
			t.Errorf("%s: ends is %t", name, got)
		}
	}
}

// Updates that no step has taken yet become one: with the newest pod, and with the reason and
// time of the first.
func TestPendingUpdatesBecomeOne(t *testing.T) {
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	for name, c := range map[string]struct {
		updates []Update
		want    UpdateType
		start   time.Time
	}{
		"a creation and a change": {[]Update{{Type: Create, Start: first}, {Type: Change, Start: second}}, Create, first},
		"a creation and a kill":   {[]Update{{Type: Create, Start: first}, {Type: Kill, Start: second}}, Kill, first},
		"a change and a sync":     {[]Update{{Type: Change, Start: first}, {Type: Sync}}, Sync, first},
		"a sync and a change":     {[]Update{{Type: Sync}, {Type: Change, Start: second}}, Change, second},
	} {
		e := &entry{}
		for _, u := range c.updates {
			u.Pod = modelPod(0)
			e.take(&u)
		}
		if e.pending.Type != c.want || !e.pending.Start.Equal(c.start) {
			t.Errorf("%s: %s since %v, want %s since %v", name, e.pending.Type, e.pending.Start, c.want, c.start)
		}
	}
}

// A step is ended early only by what makes it pointless.
func TestWhatCancelsAStep(t *testing.T) {
	seconds := func(grace int64) *KillOptions { return &KillOptions{GracePeriod: &grace} }
	kill := func(options *KillOptions) Update { return Update{Type: Kill, Pod: modelPod(0), Kill: options} }
	for name, c := range map[string]struct {
		before []Update
		update Update
		want   bool
		grace  int64
	}{
		"a change":                           {nil, Update{Type: Change, Pod: modelPod(0)}, false, 0},
		"a kill":                             {nil, kill(seconds(20)), true, 20},
		"a deletion":                         {nil, Update{Type: Change, Pod: deletedPod(20)}, true, 20},
		"another kill with as much time":     {[]Update{kill(seconds(20))}, kill(seconds(20)), false, 20},
		"another kill with more time":        {[]Update{kill(seconds(20))}, kill(seconds(30)), false, 20},
		"another kill with less time":        {[]Update{kill(seconds(20))}, kill(seconds(10)), true, 10},
		"a deletion with less time":          {[]Update{kill(seconds(20))}, Update{Type: Change, Pod: deletedPod(10)}, true, 10},
		"a change of a pod that is killed":   {[]Update{kill(seconds(20))}, Update{Type: Change, Pod: modelPod(0)}, false, 20},
		"a kill at once":                     {nil, kill(seconds(0)), true, 1},
		"a kill without a time of its own":   {nil, kill(nil), true, 30},
		"the runtime's view of a known pod":  {nil, Update{Type: Kill, Running: &Orphan{UID: "uid-0"}}, false, 0},
		"a deletion of a pod that is killed": {[]Update{kill(nil)}, Update{Type: Change, Pod: deletedPod(40)}, false, 30},
	} {
		cancelled := 0
		e := &entry{}
		e.take(&Update{Type: Create, Pod: modelPod(0)})
		e.move(Syncing)
		e.begin()
		for _, u := range c.before {
			e.take(&u)
			e.begin()
		}
		e.cancel = func() { cancelled++ }
		e.take(&c.update)
		if got := cancelled > 0; got != c.want || e.grace != c.grace {
			t.Errorf("%s: cancelled is %t, grace period %d, want %t, %d", name, got, e.grace, c.want, c.grace)
		}
	}
}

// What happens to a pod during a step that fails may be the failure itself and waits for the
// next try; a change does not.
func TestWhatComesDuringAFailingStep(t *testing.T) {
	for during, next := range map[UpdateType]bool{Sync: false, Change: true} {
		e := &entry{}
		e.take(&Update{Type: Create, Pod: modelPod(0)})
		e.move(Syncing)
		job := e.begin()
		e.take(&Update{Type: during, Pod: modelPod(0)})
		if got := e.finish(job, Outcome{}, errors.New("step failed")); got != next {
			t.Errorf("after a failed step during which a %s came, another step is due: %t", during, got)
		}
		if e.latest().Type != during {
			t.Errorf("the %s is forgotten: %s", during, e.latest().Type)
		}
	}
}

// The grace period is the shortest that was asked for, at least a second.
func TestGracePeriod(t *testing.T) {
	seconds := func(grace int64) *KillOptions { return &KillOptions{GracePeriod: &grace} }
	without := modelPod(0)
	without.Spec.TerminationGracePeriodSeconds = nil
	for name, c := range map[string]struct {
		current int64
		update  Update
		want    int64
	}{
		"the pod's own":                           {0, Update{Pod: modelPod(0)}, 30},
		"none at all":                             {0, Update{Pod: without}, 1},
		"the deletion's":                          {0, Update{Pod: deletedPod(40)}, 40},
		"the deletion's, shorter than before":     {20, Update{Pod: deletedPod(10)}, 10},
		"the deletion's, longer than before":      {20, Update{Pod: deletedPod(40)}, 20},
		"a kill's":                                {0, Update{Pod: modelPod(0), Kill: seconds(40)}, 40},
		"a kill's, not the deletion's":            {0, Update{Pod: deletedPod(10), Kill: seconds(40)}, 40},
		"a kill's, shorter than before":           {20, Update{Pod: modelPod(0), Kill: seconds(2)}, 2},
		"a kill's without, after another":         {20, Update{Pod: modelPod(0), Kill: &KillOptions{}}, 20},
		"a kill's without, of a deleted pod":      {0, Update{Pod: deletedPod(10), Kill: &KillOptions{}}, 10},
		"none, at once":                           {20, Update{Pod: deletedPod(0)}, 1},
		"the runtime's pod, which has none":       {0, Update{Running: &Orphan{}}, 1},
		"the pod's own, where one is asked for":   {5, Update{Pod: modelPod(0)}, 5},
		"the pod's own, shorter than the current": {40, Update{Pod: modelPod(0)}, 40},
	} {
		if got := effectiveGrace(c.current, &c.update); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A kill keeps the mirror pod that the worker knew, and the last function that changes the status.
func TestWhatAKillKeeps(t *testing.T) {
	mirror := modelPod(1)
	e := &entry{}
	e.take(&Update{Type: Create, Pod: modelPod(0), MirrorPod: mirror})
	for _, reason := range []string{"Preempting", "Evicted"} {
		e.take(&Update{Type: Kill, Pod: modelPod(0), Kill: &KillOptions{Status: func(status *core.PodStatus) { status.Reason = reason }}})
	}
	e.take(&Update{Type: Kill, Pod: modelPod(0), Kill: &KillOptions{}})
	job, status := e.begin(), core.PodStatus{}
	if job.Status(&status); job.MirrorPod != mirror || status.Reason != "Evicted" {
		t.Errorf("mirror pod %v, reason %q, want Evicted", job.MirrorPod, status.Reason)
	}
	e.take(&Update{Type: Change, Pod: modelPod(0)})
	if job := e.begin(); job.MirrorPod != nil {
		t.Error("a mirror pod that is gone is kept by a change")
	}
}

// What comes for the next pod under a UID is kept until this one is forgotten: what it is to do
// first then, and nothing of a pod that is removed again.
func TestWhatIsKeptForTheNextPod(t *testing.T) {
	create, change := Update{Type: Create, Pod: modelPod(0)}, Update{Type: Change, Pod: modelPod(0)}
	kill := Update{Type: Kill, Pod: modelPod(0), Kill: &KillOptions{}}
	removed := Update{Type: Kill, Pod: modelPod(0), Kill: &KillOptions{Removed: true}}
	soon := func(grace int64) Update {
		return Update{Type: Kill, Pod: modelPod(0), Kill: &KillOptions{GracePeriod: &grace}}
	}
	for name, c := range map[string]struct {
		updates []Update
		want    Phase // Unknown for none
		update  UpdateType
		grace   int64
	}{
		"a pod":                         {[]Update{create}, Waiting, Create, 0},
		"a creation and a change":       {[]Update{create, change}, Waiting, Create, 0},
		"a kill":                        {[]Update{create, kill}, Terminating, Kill, 30},
		"a kill without options":        {[]Update{create, {Type: Kill, Pod: modelPod(0)}}, Terminating, Kill, 30},
		"a change after a kill":         {[]Update{create, kill, change}, Terminating, Change, 30},
		"kills with less and less time": {[]Update{create, soon(20), soon(5), soon(10)}, Terminating, Kill, 5},
		"a pod that is removed again":   {[]Update{create, change, removed}, Unknown, 0, 0},
		"one that comes a second time":  {[]Update{create, removed, create}, Waiting, Create, 0},
		"one that is killed, and comes": {[]Update{create, kill, removed, create}, Waiting, Create, 0},
	} {
		e := &entry{}
		e.take(&create)
		e.take(&removed)
		for _, u := range c.updates {
			if e.take(&u) {
				t.Errorf("%s: a step of the pod that goes is due for a %s", name, u.Type)
			}
		}
		next := cmp.Or(e.next, &entry{pending: &Update{}})
		if next.phase != c.want || next.pending.Type != c.update || next.grace != c.grace {
			t.Errorf("%s: kept is a %s of a pod that is %s and has %d s, want %s, %s, %d s", name, next.pending.Type, next.phase, next.grace, c.update, c.want, c.grace)
		}
	}
}

// A pod goes through its phases one by one, whether it ends by itself or is ended already.
func TestPhasesOneByOne(t *testing.T) {
	for name, c := range map[string]struct {
		first Update
		want  []Phase
	}{
		"a pod that ends by itself": {Update{Type: Create, Pod: modelPod(0)}, []Phase{Waiting, Terminating, Terminated, Finished}},
		"a pod that has ended":      {Update{Type: Create, Pod: podIn(corev1.PodFailed)}, []Phase{Terminating, Terminated, Finished}},
		"the runtime's pod":         {Update{Type: Kill, Running: &Orphan{UID: "uid-0"}}, []Phase{Terminating, Unknown}},
	} {
		e := &entry{}
		e.take(&c.first)
		got := []Phase{e.phase}
		for e.pending != nil {
			if e.phase == Waiting {
				e.move(Syncing)
			}
			job := e.begin()
			e.finish(job, Outcome{Terminal: true}, nil)
			got = append(got, e.phase)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
