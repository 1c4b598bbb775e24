package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// endPredecessors ends, before a static pod begins, what still runs of those
// that had its name before it. A manifest that was changed while no kubelet ran
// makes another pod, and the workers know nothing of the old one, so that they
// can't let the new one wait for it: both would run, and want the same ports.
// Housekeeping ends the old one too, but not before the API server was heard,
// and that may be the very pod that is to be replaced. It is left to housekeeping
// where nothing of it runs: taking its network away may need the very pod that is
// to begin.
func (k *Kubelet) endPredecessors(ctx context.Context, pod *core.Pod, runtime *runtimestate.PodStatus) error {
	if !podmanager.IsStatic(pod) || len(runtime.Sandboxes) > 0 {
		return nil
	}
	all, err := k.state.Pods(ctx)
	if err != nil {
		return fmt.Errorf("what runs of the static pod's predecessors is not known: %w", err)
	}
	for _, other := range all {
		if _, desired := k.pods.ByUID(other.UID); desired || other.UID == pod.UID || !other.Runs() ||
			other.Source != pod.Annotations[core.ConfigSourceAnnotation] || other.Name != pod.Name || other.Namespace != pod.Namespace {
			continue
		}
		if err := k.SyncTerminatingRuntimePod(ctx, podworker.RunningPod{UID: other.UID, Namespace: other.Namespace, Name: other.Name}); err != nil {
			k.events.Eventf(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing the pod's predecessor: %v", err)
			return fmt.Errorf("the static pod's predecessor %s: %w", other.UID, err)
		}
	}
	return nil
}
