package condition

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/authz"
)

// Surroundings are what the plugins for users' webhooks and policies need.
type Surroundings struct {
	Cluster    match.Cluster
	Authorizer authz.Authorizer
	// Annotate adds a fact to the audit event of the request in ctx.
	Annotate func(ctx context.Context, key, value string)
	Metrics  prometheus.Registerer
	Clock    clock.PassiveClock
	Logger   *zap.Logger
}
