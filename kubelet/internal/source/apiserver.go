package source

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// RunAPIServer gives the pods that the API server has for the node to the mux,
// until ctx ends. The state is given anew with each change; pods that did not
// change are the same objects as before.
func RunAPIServer(ctx context.Context, mux *Mux, client *rest.Client, nodeName string, clock clock.Clock, logger *zap.Logger) error {
	sink := &podSink{ctx: ctx, mux: mux}
	sink.store = watch.NewStore[*core.Pod](nil)
	reflector := watch.NewReflector(client.Resource(core.Pods, ""), func() *core.Pod { return &core.Pod{} }, sink,
		watch.Options{FieldSelector: "spec.nodeName=" + nodeName, Clock: clock, Logger: logger})
	return reflector.Run(ctx)
}

// podSink keeps the state that the watch brings and tells the mux of it.
type podSink struct {
	ctx   context.Context // of the reflector that calls it
	mux   *Mux
	store *watch.Store[*core.Pod]
}

func (s *podSink) Replace(pods []*core.Pod) {
	s.store.Replace(pods)
	s.mux.Set(s.ctx, core.ApiserverSource, s.store.List())
}

func (s *podSink) Apply(t watch.Type, pod *core.Pod) {
	s.store.Apply(t, pod)
	s.mux.Set(s.ctx, core.ApiserverSource, s.store.List())
}
