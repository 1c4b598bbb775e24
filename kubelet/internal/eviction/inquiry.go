package eviction

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// inquiry is a measurement of what pods have on disk, made beside the loop: to walk through millions of
// files takes minutes, in which the node would be blind to its memory. Only the loop uses it.
type inquiry struct {
	answers chan answer // of the measurement that is being made; nil if none is
	cancel  context.CancelFunc
	next    time.Time // before which no other is begun
}

type answer struct {
	usages map[types.UID]*Usage
	err    error
	took   time.Duration
}

const (
	// walkWithin is how long the loop waits for a measurement that it has begun. Most are there by then.
	walkWithin = 5 * time.Second
	// restFactor makes disks be walked through for a tenth of the time at most, unless walks take longer
	// than ten times Options.LongestRest.
	restFactor = 9
)

// measureDisks returns a measurement as soon as there is one, and otherwise begins it, of these pods, if it is time.
func (m *Manager) measureDisks(ctx context.Context, i *inquiry, pods []*core.Pod) (answer, bool) {
	if i.answers != nil {
		select {
		case a := <-i.answers:
			return i.end(a, m), true
		default:
			return answer{}, false
		}
	}
	began := m.Clock.Now()
	if began.Before(i.next) {
		return answer{}, false
	}
	measuring, cancel := context.WithCancel(ctx)
	answers := make(chan answer, 1)
	i.answers, i.cancel = answers, cancel
	go func() {
		usages, err := m.Measure(measuring, pods, true)
		answers <- answer{usages, err, m.Clock.Since(began)}
	}()
	waiting, stop := context.WithTimeout(ctx, walkWithin)
	defer stop()
	select {
	case a := <-answers:
		return i.end(a, m), true
	case <-waiting.Done():
		return answer{}, false
	}
}

func (i *inquiry) end(a answer, m *Manager) answer {
	i.abandon()
	i.next = m.Clock.Now().Add(min(restFactor*a.took, m.LongestRest))
	return a
}

// abandon ends the measurement that is being made, if there is one.
func (i *inquiry) abandon() {
	if i.answers != nil {
		i.cancel()
		i.answers = nil
	}
}
