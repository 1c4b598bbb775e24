package source

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// APIServer is the source of the pods that are bound to the node.
type APIServer struct {
	Client   *rest.Client
	NodeName string
	// NodeKnown is closed when the node has been read from the API. Before that nobody can
	// tell which pods may run on it.
	NodeKnown <-chan struct{}
	Clock     clock.Clock
	Logger    *zap.Logger
}

// Run gives the pods to the mux until ctx ends, once the node is known. It gives the
// whole state with each change; unchanged pods are the same objects as before.
func (a *APIServer) Run(ctx context.Context, mux *Mux) error {
	select {
	case <-a.NodeKnown:
	case <-ctx.Done():
		return ctx.Err()
	}
	sink := &podSink{ctx: ctx, mux: mux}
	sink.store = watch.NewStore[*core.Pod](nil)
	reflector := watch.NewReflector(a.Client.Resource(core.Pods, ""), func() *core.Pod { return &core.Pod{} }, sink,
		watch.Options{FieldSelector: "spec.nodeName=" + a.NodeName, Clock: a.Clock, Logger: a.Logger})
	return reflector.Run(ctx)
}

// podSink keeps the state that the watch brings and tells the mux of it.
type podSink struct {
	ctx   context.Context // of the reflector that calls it
	mux   *Mux
	store *watch.Store[*core.Pod]
}

// Get implements watch.Keeper: a pod that can't be completely read is not gone.
func (s *podSink) Get(namespace, name string) (*core.Pod, bool) { return s.store.Get(namespace, name) }

func (s *podSink) Replace(pods []*core.Pod) {
	s.store.Replace(pods)
	s.mux.Set(s.ctx, core.ApiserverSource, s.store.List())
}

func (s *podSink) Apply(t watch.Type, pod *core.Pod) {
	s.store.Apply(t, pod)
	s.mux.Set(s.ctx, core.ApiserverSource, s.store.List())
}
