package lifecycle

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// Victim is a pod that ends to make room. Done is closed when it has ended;
// nothing waits for it after Until.
type Victim struct {
	Pod   *core.Pod
	Done  <-chan struct{}
	Until time.Time
}

// WaitForVictims makes a critical pod start only after other pods have ended.
func (l *Lifecycle) WaitForVictims(critical types.UID, leaves []Victim) {
	l.records.change(critical, func(r *record) { r.victims = leaves })
}

// waitForVictims delays a critical pod while others end to make room for it. It does not
// wait for ever: the node can cope with too many pods for a while, but perhaps not
// without this one.
func (l *Lifecycle) waitForVictims(ctx context.Context, pod *core.Pod) error {
	for _, end := range l.records.of(pod.UID).victims {
		timer := l.Clock.NewTimer(end.Until.Sub(l.Clock.Now()))
		select {
		case <-end.Done:
		case <-timer.C():
			l.Events.Eventf(end.Pod, corev1.EventTypeWarning, "ExceededGracePeriod",
				"Container runtime did not kill the pod within specified grace period.")
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	l.records.change(pod.UID, func(r *record) { r.victims = nil })
	return nil
}
