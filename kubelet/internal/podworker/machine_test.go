package podworker

import (
	"errors"
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
		"the runtime's pod":    {Update{Type: Sync, Running: &RunningPod{UID: "uid-0"}}, true},
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
		"the runtime's view of a known pod":  {nil, Update{Type: Kill, Running: &RunningPod{UID: "uid-0"}}, false, 0},
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
