package server

import (
	"context"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/config"
	"kctl/proto/tracing"
)

// newTracer makes the tracer that the flags ask for; nil if they ask for none.
func newTracer(ctx context.Context, o *config.Options, logger *zap.Logger) (*tracing.Tracer, error) {
	c, err := o.Operation.Tracing()
	if c == nil || err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return tracing.New(ctx, tracing.Options{
		Endpoint: ptr.Deref(c.Endpoint, ""), PerMillion: ptr.Deref(c.SamplingRatePerMillion, 0),
		About: []attribute.KeyValue{attribute.String("service.name", "apiserver"), attribute.String("service.instance.id", host)},
	}, logger)
}
