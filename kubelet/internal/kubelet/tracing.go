package kubelet

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
	"kctl/proto/tracing"
)

// newTracer makes the tracer that the configuration asks for; nil for none.
func (k *Kubelet) newTracer(ctx context.Context) (*tracing.Tracer, error) {
	c := k.config.Tracing
	if c == nil {
		return nil, nil
	}
	return tracing.New(ctx, tracing.Options{
		Endpoint: ptr.Deref(c.Endpoint, ""), PerMillion: ptr.Deref(c.SamplingRatePerMillion, 0),
		About: []attribute.KeyValue{attribute.String("service.name", "kubelet"), attribute.String("host.name", k.nodeName)},
	}, k.logger)
}

// tracePod starts the span of a sync of the pod, which contains the calls to the runtime
// and to the API server.
func (k *Kubelet) tracePod(ctx context.Context, name string, pod *core.Pod) (context.Context, trace.Span) {
	return k.tracer.Begin(ctx, name,
		attribute.String("k8s.pod", pod.Namespace+"/"+pod.Name), attribute.String("k8s.pod.uid", string(pod.UID)),
		attribute.String("k8s.pod.name", pod.Name), attribute.String("k8s.namespace.name", pod.Namespace))
}
