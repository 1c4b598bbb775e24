package tracing

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// instrumentationName is where spans say they come from.
const instrumentationName = "kctl"

// Propagator carries a span's identity from one program to the next (W3C Trace
// Context).
var Propagator propagation.TextMapPropagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// noSpan is the span of work that nobody traces.
var noSpan = trace.SpanFromContext(context.Background())

// Begin starts the span of work that no request has asked for. The caller ends it
// with End.
func (t *Tracer) Begin(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil {
		return ctx, noSpan
	}
	return t.provider.Tracer(instrumentationName).Start(ctx, name, trace.WithAttributes(about...))
}

// Step starts a span below the one that ctx is in; where none is recorded it does
// nothing, and costs next to nothing. The caller ends it with End.
func Step(ctx context.Context, name string) (context.Context, trace.Span) {
	within := trace.SpanFromContext(ctx)
	if !within.IsRecording() {
		return ctx, noSpan
	}
	return within.TracerProvider().Tracer(instrumentationName).Start(ctx, name)
}

// Request starts the span of a request that came in at since. If its client is trusted, it
// continues the client's trace; any other gets a trace of its own that links to the
// client's, so that strangers can't have everything recorded. The caller ends the span.
func (t *Tracer) Request(r *http.Request, name string, since time.Time, trusted bool) (context.Context, trace.Span) {
	ctx := Propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	how := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(since),
		trace.WithAttributes(
			attribute.String("http.request.method", r.Method),
			attribute.String("http.target", r.URL.RequestURI()),
			attribute.String("user_agent.original", r.UserAgent()),
			attribute.String("client.address", r.RemoteAddr),
		),
	}
	if caller := trace.SpanContextFromContext(ctx); !trusted {
		how = append(how, trace.WithNewRoot())
		if caller.IsValid() {
			how = append(how, trace.WithLinks(trace.Link{SpanContext: caller}))
		}
	}
	return t.provider.Tracer(instrumentationName).Start(ctx, name, how...)
}

// Inject makes a request's receiver continue the trace that ctx is in.
func Inject(ctx context.Context, header http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		Propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// End ends a span; it is marked as failed if there is an error.
func End(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Answered ends the span of a request that was answered with code.
func Answered(span trace.Span, code int) {
	span.SetAttributes(attribute.Int("http.response.status_code", code))
	if code >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(code))
	}
	span.End()
}
