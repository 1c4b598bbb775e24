package condition

import (
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
	Metrics    prometheus.Registerer
	Clock      clock.PassiveClock
	Logger     *zap.Logger
}
