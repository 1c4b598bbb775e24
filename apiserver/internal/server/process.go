package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/server/serving"
	"kctl/proto/daemon"
	"kctl/proto/tracing"
)

// process is this server's process: what its flags are, how it tells the time and
// its operators what happens, and the phases of its life. All parts share it.
type process struct {
	options *config.Options
	clock   clock.WithTicker
	logger  *zap.Logger
	tracer  *tracing.Tracer // nil for no tracing
	metrics *prometheus.Registry
	health  *daemon.Health
	itself  *serving.Itself // for its own requests
	phases
}

func newProcess(ctx context.Context, o *config.Options, clock clock.WithTicker, logger *zap.Logger) (*process, error) {
	tracer, err := newTracer(ctx, o, logger)
	if err != nil {
		return nil, err
	}
	return &process{
		options: o, clock: clock, logger: logger, tracer: tracer,
		metrics: daemon.NewRegistry(), health: daemon.NewHealth(), itself: serving.NewItself(), phases: newPhases(),
	}, nil
}
