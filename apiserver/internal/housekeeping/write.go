package housekeeping

import (
	"context"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// asControllerManager is how loops write: without admission, and in the name of the
// program that runs them in upstream's clusters.
var asControllerManager = registry.Admission{FieldManager: registry.ControllerManager}

// modify changes an object as kube-controller-manager.
func modify(ctx context.Context, objects registry.Objects, target registry.Target, change registry.Transform) error {
	return registry.Modify(ctx, objects, target, registry.ControllerManager, change)
}

// WriteEvent records an event for users, in the name of a field manager. An event that
// can't be written is only logged, since nothing depends on it.
func WriteEvent(ctx context.Context, events registry.Resource, manager string, event *core.Event, logger *zap.Logger) {
	_, err := events.Create(ctx, event, registry.Admission{FieldManager: manager}, &metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		logger.Warn("the event could not be written", zap.String("object", event.InvolvedObject.Name), zap.Error(err))
	}
}
