package tracing_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zaptest"

	"kctl/proto/tracing"
	"kctl/proto/tracing/tracingtest"
)

func newTracer(t *testing.T, perMillion int32) (*tracing.Tracer, *tracingtest.Collector) {
	t.Helper()
	c := tracingtest.Start(t)
	tracer, err := tracing.New(t.Context(), tracing.Options{
		Endpoint: c.Endpoint, PerMillion: perMillion, About: []attribute.KeyValue{attribute.String("service.name", "tested")},
	}, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	return tracer, c
}

// sent are the spans, by name, after the tracer was closed.
func sent(t *testing.T, tracer *tracing.Tracer, c *tracingtest.Collector) map[string]tracingtest.Span {
	t.Helper()
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	spans := map[string]tracingtest.Span{}
	for _, span := range c.Spans() {
		spans[span.Name] = span
	}
	return spans
}

func TestStepsArePartsOfTheirSpan(t *testing.T) {
	tracer, c := newTracer(t, 1e6)
	ctx, whole := tracer.Begin(t.Context(), "whole", attribute.String("of", "pod"))
	_, step := tracing.Step(ctx, "step")
	tracing.End(step, errors.New("broken"))
	whole.End()
	spans := sent(t, tracer, c)
	if got := spans["whole"]; got.Service != "tested" || got.Attribute("of") != "pod" || len(got.ParentSpanId) > 0 {
		t.Errorf("whole: %+v", got)
	}
	if got := spans["step"]; !got.Within(spans["whole"]) || got.Status.Message != "broken" {
		t.Errorf("step: %+v", got)
	}
}

func TestNothingIsMadeOfWhatNobodyTraces(t *testing.T) {
	var none *tracing.Tracer
	ctx, span := none.Begin(t.Context(), "nothing")
	stepping, step := tracing.Step(ctx, "step")
	header := http.Header{}
	tracing.Inject(stepping, header)
	tracing.End(step, errors.New("broken"))
	span.End()
	if stepping != t.Context() || len(header) > 0 || none.Close() != nil {
		t.Errorf("context %v, header %v", stepping, header)
	}
	tracer, c := newTracer(t, 0)
	_, span = tracer.Begin(t.Context(), "not sampled")
	span.End()
	if spans := sent(t, tracer, c); len(spans) > 0 {
		t.Errorf("sent: %v", spans)
	}
}

// tracedRequest is a request that belongs to a sampled span, of.
func tracedRequest(t *testing.T) (r *http.Request, of trace.SpanContext) {
	t.Helper()
	of = trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?limit=1", nil)
	tracing.Inject(trace.ContextWithSpanContext(t.Context(), of), r.Header)
	if r.Header.Get("Traceparent") == "" {
		t.Fatal("the trace is not passed on")
	}
	return r, of
}

// A trusted caller's requests are traced whatever the sampling rate.
func TestOnlyATrustedCallersTraceIsGoneOnWith(t *testing.T) {
	tracer, c := newTracer(t, 0)
	r, of := tracedRequest(t)
	for name, trusted := range map[string]bool{"trusted": true, "stranger's": false} {
		ctx, span := tracer.Request(r, name, time.Now(), trusted)
		onward := http.Header{}
		tracing.Inject(ctx, onward)
		if own := trace.SpanContextFromContext(ctx); own.TraceID() == of.TraceID() != trusted || onward.Get("Traceparent") == r.Header.Get("Traceparent") {
			t.Errorf("%s: goes on with %v, and %v", name, own, onward)
		}
		tracing.Answered(span, http.StatusBadGateway)
	}
	spans := sent(t, tracer, c)
	got, ok := spans["trusted"]
	if id := of.SpanID(); !ok || len(spans) != 1 || !slices.Equal(got.ParentSpanId, id[:]) || got.Attribute("http.target") != "/api/v1/pods?limit=1" ||
		got.Status.Message != "Bad Gateway" {
		t.Errorf("sent: %v", spans)
	}
}

func TestAStrangersTraceIsPointedAt(t *testing.T) {
	tracer, c := newTracer(t, 1e6)
	r, of := tracedRequest(t)
	_, span := tracer.Request(r, "GET", time.Now(), false)
	tracing.Answered(span, http.StatusOK)
	got := sent(t, tracer, c)["GET"]
	if id := of.TraceID(); len(got.Links) != 1 || !slices.Equal(got.Links[0].TraceId, id[:]) || slices.Equal(got.TraceId, id[:]) || len(got.ParentSpanId) > 0 {
		t.Errorf("span: %v", got)
	}
}

// An absent collector holds up nobody.
func TestACollectorThatIsNotThere(t *testing.T) {
	tracer, err := tracing.New(t.Context(), tracing.Options{Endpoint: "127.0.0.1:1", PerMillion: 1e6}, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Begin(context.Background(), "lost")
	span.End()
	if err := tracer.Close(); err == nil {
		t.Error("lost spans are not reported")
	}
}
