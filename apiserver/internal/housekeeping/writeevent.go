package housekeeping

import (
	"context"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// WriteEvent records an event for users. An event that can't be written is only
// logged, since nothing depends on it.
func WriteEvent(ctx context.Context, events registry.Resource, event *core.Event, logger *zap.Logger) {
	_, err := events.Create(ctx, event, registry.Admission{}, &metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		logger.Warn("the event could not be written", zap.String("object", event.InvolvedObject.Name), zap.Error(err))
	}
}
