package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// endPredecessors ends, before a static pod starts, earlier pods of the same name
// that still run. A manifest that was changed while no kubelet ran makes another
// pod, and the workers know nothing about the old one, so they can't make the new
// one wait for it: both would run, and want the same ports. Housekeeping would
// end the old one too, but not before the API server has been heard, and that may
// be the very pod that is being replaced. If nothing of the old pod runs, it is
// left to housekeeping: removing its network may need the very pod that is about
// to start.
func (l *Lifecycle) endPredecessors(ctx context.Context, pod *core.Pod, found *runtimestate.PodStatus) error {
	if !podmanager.IsStatic(pod) || len(found.Sandboxes) > 0 {
		return nil
	}
	all, err := l.State.Pods(ctx)
	if err != nil {
		return fmt.Errorf("what runs of the static pod's predecessors is not known: %w", err)
	}
	for _, other := range all {
		if _, desired := l.Pods.ByUID(other.UID); desired || other.UID == pod.UID || !other.Runs() ||
			other.Source != pod.Annotations[core.ConfigSourceAnnotation] || other.Name != pod.Name || other.Namespace != pod.Namespace {
			continue
		}
		if err := l.SyncTerminatingRuntimePod(ctx, podworker.Orphan{
			UID: other.UID, Namespace: other.Namespace, Name: other.Name,
		}); err != nil {
			l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing the pod's predecessor: %v", err)
			return fmt.Errorf("the static pod's predecessor %s: %w", other.UID, err)
		}
	}
	return nil
}
