package kubelet

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/utils/ptr"

	"kctl/proto/tracing"
)

// newTracer makes the tracer that the configuration asks for; nil for none.
func (g *given) newTracer(ctx context.Context) (*tracing.Tracer, error) {
	c := g.config.Tracing
	if c == nil {
		return nil, nil
	}
	return tracing.New(ctx, tracing.Options{
		Endpoint:   ptr.Deref(c.Endpoint, ""),
		PerMillion: ptr.Deref(c.SamplingRatePerMillion, 0),
		About:      []attribute.KeyValue{attribute.String("service.name", "kubelet"), attribute.String("host.name", g.identity.NodeName)},
	}, g.logger)
}
