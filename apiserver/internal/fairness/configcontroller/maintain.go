package configcontroller

import (
	"context"
	"time"

	"go.uber.org/zap"

	"kctl/apiserver/internal/resources/flowcontrol"
)

// maintainEvery is how often changes by users to the objects that every cluster
// has are looked for.
const maintainEvery = time.Minute

// Maintain keeps the objects that every cluster has as they should be, until
// ctx ends.
func (o Options) Maintain(ctx context.Context) error {
	ticker := o.Clock.NewTicker(maintainEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
			if err := flowcontrol.Bootstrap(ctx, o.Schemas, o.Levels); err != nil && ctx.Err() == nil {
				o.Logger.Warn("flow schemas and priority levels are not all as they should be, trying again", zap.Error(err))
			}
		}
	}
}
