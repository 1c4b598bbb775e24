// Package informer follows the cluster's services, which pods see as environment
// variables, and its runtime classes, which name the handlers that run pods.
//
// The kubelet runs it beside the source of pods; the pod runtime asks it. It
// changes nothing in the cluster.
package informer

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// byNamespace is the index of services.
const byNamespace = "namespace"

// Informers are the services and runtime classes, as far as known from the API server.
type Informers struct {
	services         *watch.Store[*corev1.Service]
	classes          *watch.Store[*nodev1.RuntimeClass]
	serviceReflector *watch.Reflector[*corev1.Service]
	classReflector   *watch.Reflector[*nodev1.RuntimeClass]
	servicesSynced   <-chan struct{}
}

// New returns empty Informers; Run fills them.
func New(client *rest.Client, clock clock.Clock, logger *zap.Logger) *Informers {
	s := &Informers{
		services: watch.NewStore(map[string]watch.IndexFunc[*corev1.Service]{
			byNamespace: func(s *corev1.Service) []string { return []string{s.Namespace} },
		}),
		classes: watch.NewStore[*nodev1.RuntimeClass](nil),
	}
	o := watch.Options{Clock: clock, Logger: logger}
	s.serviceReflector = watch.NewReflector(client.Resource(core.Services, ""), func() *corev1.Service { return new(corev1.Service) }, s.services, o)
	s.classReflector = watch.NewReflector(client.Resource(core.RuntimeClasses, ""), func() *nodev1.RuntimeClass { return new(nodev1.RuntimeClass) }, s.classes, o)
	s.servicesSynced = s.serviceReflector.Synced()
	return s
}

// Run follows services and classes until ctx ends.
func (s *Informers) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { _ = s.classReflector.Run(ctx) }) // ends with ctx only, as below
	err := s.serviceReflector.Run(ctx)
	both.Wait()
	return err
}

// Services are those of a namespace.
func (s *Informers) Services(namespace string) []*corev1.Service {
	return s.services.ByIndex(byNamespace, namespace)
}

// WaitForServices waits until the services have been read once: a container that
// is started earlier would not see existing ones.
func (s *Informers) WaitForServices(ctx context.Context) error {
	select {
	case <-s.servicesSynced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("services have not yet been read at least once, cannot construct envvars: %w", ctx.Err())
	}
}

// RuntimeHandler is the runtime's handler of a class.
func (s *Informers) RuntimeHandler(class string) (string, error) {
	found, ok := s.classes.Get("", class)
	if !ok {
		return "", fmt.Errorf("RuntimeClass %q not found", class)
	}
	return found.Handler, nil
}
