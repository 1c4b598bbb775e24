package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc/stats"
)

// flushTimeout is how long Close waits for the collector.
const flushTimeout = 2 * time.Second

// Options say where spans go and which program they come from.
type Options struct {
	// Endpoint is the collector's gRPC address (OTLP, without TLS); empty is
	// localhost:4317.
	Endpoint string
	// PerMillion is how many in a million are traced of what no caller has decided
	// about; what a caller traces always is, and what it decided not to trace
	// never is.
	PerMillion int32
	// About names the program, by the semantic conventions' attributes.
	About []attribute.KeyValue
}

// Tracer makes spans and sends them away in the background. It is safe for
// concurrent use; a nil one makes none.
type Tracer struct {
	provider *sdktrace.TracerProvider
}

// New returns a Tracer. It does not wait for the collector, and spans that can't be
// sent are dropped, which is logged.
func New(ctx context.Context, o Options, logger *zap.Logger) (*Tracer, error) {
	to := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
	if o.Endpoint != "" {
		to = append(to, otlptracegrpc.WithEndpoint(o.Endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, to...)
	if err != nil {
		return nil, fmt.Errorf("export spans to %q: %w", o.Endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("spans are lost", zap.String("endpoint", o.Endpoint), zap.Error(err))
	}))
	sampler := sdktrace.NeverSample()
	if o.PerMillion > 0 {
		sampler = sdktrace.TraceIDRatioBased(float64(o.PerMillion) / 1e6)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
		sdktrace.WithResource(resource.NewSchemaless(o.About...)),
	)
	return &Tracer{provider: provider}, nil
}

// Close sends what has not been sent, unless the collector takes too long.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// GRPCClient makes a span of each call over a gRPC connection (grpc.WithStatsHandler),
// which its server goes on with.
func (t *Tracer) GRPCClient() stats.Handler {
	return otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(Propagator))
}
