package lifecycle

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// pullSecrets are a pod's pull secrets that could be read, and the names of the
// others, without which pulls may succeed, too.
type pullSecrets struct {
	found   []*core.Secret
	missing []string
}

// pullSecrets reads the pod's pull secrets in parallel: each one that the node may
// not read takes its time.
func (l *Lifecycle) pullSecrets(ctx context.Context, pod *core.Pod) (secrets pullSecrets) {
	if podmanager.IsStatic(pod) {
		return secrets
	}
	found := make([]*core.Secret, len(pod.Spec.ImagePullSecrets))
	var asking sync.WaitGroup
	for i, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		asking.Go(func() {
			if secret, err := l.Objects.Secret(ctx, pod.Namespace, ref.Name); err == nil {
				found[i] = secret
			}
		})
	}
	asking.Wait()
	for i, ref := range pod.Spec.ImagePullSecrets {
		switch {
		case found[i] != nil:
			secrets.found = append(secrets.found, found[i])
		case ref.Name != "":
			secrets.missing = append(secrets.missing, ref.Name)
		}
	}
	return secrets
}

// recordMissingSecrets reports missing pull secrets, if a pull failed.
func (l *Lifecycle) recordMissingSecrets(pod *core.Pod, pull func() pullSecrets, waiting map[string]runtimestate.Waiting) {
	for _, why := range waiting {
		if why.Reason != image.ReasonErrPull {
			continue
		}
		if missing := pull().missing; len(missing) > 0 {
			l.Events.Eventf(pod, corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(missing, ", "))
		}
		return
	}
}
