// Package tracingtest is an OpenTelemetry collector for tests, which can read
// what programs send to it over gRPC.
package tracingtest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a span that was received, with its service.
type Span struct {
	Service string
	*tracev1.Span
}

// Attribute is the text of an attribute; "" if the span has none of that name.
func (s Span) Attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// Within says whether the span is a child of another.
func (s Span) Within(outer Span) bool {
	return slices.Equal(s.TraceId, outer.TraceId) && slices.Equal(s.ParentSpanId, outer.SpanId)
}

// Collector receives spans. It is safe for concurrent use.
type Collector struct {
	collector.UnimplementedTraceServiceServer
	Endpoint string // HOST:PORT

	mu    sync.Mutex
	more  *sync.Cond
	spans []Span
}

// Start returns a Collector on a port of loopback, until the test ends.
func Start(t testing.TB) *Collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Endpoint: listener.Addr().String()}
	c.more = sync.NewCond(&c.mu)
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("collector: %v", err)
		}
	})
	return c
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.ResourceSpans {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans = append(c.spans, Span{service, span})
			}
		}
	}
	c.more.Broadcast()
	return &collector.ExportTraceServiceResponse{}, nil
}

// Spans are all spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Await returns the first matching span when it has come; it fails the test if
// ctx ends before that.
func (c *Collector) Await(ctx context.Context, t testing.TB, what string, so func(Span) bool) Span {
	t.Helper()
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.more.Broadcast()
	})
	defer stop()
	for {
		spans := c.Spans()
		if i := slices.IndexFunc(spans, so); i >= 0 {
			return spans[i]
		}
		c.mu.Lock()
		for len(c.spans) == len(spans) && ctx.Err() == nil {
			c.more.Wait()
		}
		c.mu.Unlock()
		if ctx.Err() != nil {
			t.Fatalf("no span of %s among %d", what, len(spans))
		}
	}
}
