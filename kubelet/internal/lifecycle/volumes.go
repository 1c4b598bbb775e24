package lifecycle

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/tracing"
)

// mountVolumes runs beside the making of the sandbox.
func (l *Lifecycle) mountVolumes(ctx context.Context, pod *core.Pod) error {
	ctx, span := tracing.Step(ctx, "volumes")
	err := l.Volumes.Mount(ctx, pod)
	tracing.End(span, err)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			l.MountFailed(pod, err)
		}
		return err
	}
	l.Statuses.Stamps(pod).Stamp(relay.KubeletVolumesReady, l.Clock.Now())
	return nil
}

// MountFailed writes an event for each of a pod's volumes that could not be
// mounted.
func (l *Lifecycle) MountFailed(pod *core.Pod, err error) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap() // of a volume each
	}
	for _, one := range all {
		l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedMount", "%v", one)
	}
}

// filesOf returns a function that reads files that a pod's containers wrote;
// nil if they can't write any.
func (l *Lifecycle) filesOf(pod *core.Pod) func(volume, path string) ([]byte, error) {
	if l.ReadFile == nil {
		return nil
	}
	return func(volume, path string) ([]byte, error) { return l.ReadFile(pod, volume, path) }
}
