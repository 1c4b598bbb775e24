package extensions

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
	"kctl/proto/tracing"
	"kctl/proto/tracing/tracingtest"
)

// A create that the client traces belongs to the client's trace, whatever the
// sampling rate, and a webhook call belongs to the create.
func TestACreateIsTraced(t *testing.T) {
	collector := tracingtest.Start(t)
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: "+collector.Endpoint), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *config.Options) { o.Operation.TracingConfigFile = file })
	h := serveHooks(t)
	var mu sync.Mutex
	var passedOn string
	h.raw("traced", func(_ http.ResponseWriter, r *http.Request, _ *admissionv1.AdmissionReview) {
		mu.Lock()
		defer mu.Unlock()
		passedOn = r.Header.Get("Traceparent")
	})
	c.register(h, true, h.webhook("traced"))

	clients := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceFlags: trace.FlagsSampled})
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer master"}}
	tracing.Inject(trace.ContextWithSpanContext(t.Context(), clients), header)
	answer, body := c.Ask(http.MethodPost, core.ConfigMaps.Path("default", ""), header,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"traced","labels":{"hook":"traced"}}}`))
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%d: %s", answer.StatusCode, body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	within := func(name string, outer *tracingtest.Span) tracingtest.Span {
		return collector.Await(ctx, t, name, func(s tracingtest.Span) bool {
			return s.Name == name && (outer == nil || s.Within(*outer))
		})
	}
	request := within("POST /api/v1/namespaces/{:namespace}/configmaps", nil)
	if id := clients.SpanID(); !slices.Equal(request.ParentSpanId, id[:]) || request.Service != "apiserver" ||
		request.Attribute("audit-id") != answer.Header.Get("Audit-Id") {
		t.Errorf("the request's span: %v", request)
	}
	for _, step := range []string{"priorityandfairness", "authorization", "validating admission"} {
		within(step, &request)
	}
	if stored := within("Create etcd3", &request); stored.Attribute("key") != "/registry/configmaps/default/traced" {
		t.Errorf("storing: %v", stored)
	}
	admission := within("mutating admission", &request)
	call := within("Call mutating webhook", &admission)
	mu.Lock()
	defer mu.Unlock()
	received := tracing.Propagator.Extract(t.Context(), propagation.HeaderCarrier{"Traceparent": {passedOn}})
	if sent := trace.SpanContextFromContext(received); sent.SpanID() != trace.SpanID(call.SpanId) {
		t.Errorf("the webhook got %q, its call is %x", passedOn, call.SpanId)
	}
	if strays := slices.DeleteFunc(collector.Spans(), func(s tracingtest.Span) bool { return slices.Equal(s.TraceId, request.TraceId) }); len(strays) > 0 {
		t.Errorf("traced too: %v", strays)
	}
}
