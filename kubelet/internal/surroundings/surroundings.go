// Package surroundings follows what pods find around them in the cluster: the
// services, which they see as environment variables, and the runtime classes,
// which name the handler that runs them.
//
// The kubelet runs it beside the source of pods; the pod runtime asks it. It
// changes nothing in the cluster.
package surroundings

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

// Surroundings are the services and runtime classes, as far as known from the API server.
type Surroundings struct {
	services     *watch.Store[*corev1.Service]
	classes      *watch.Store[*nodev1.RuntimeClass]
	ofServices   *watch.Reflector[*corev1.Service]
	ofClasses    *watch.Reflector[*nodev1.RuntimeClass]
	servicesRead <-chan struct{}
}

// New returns empty Surroundings; Run fills them.
func New(client *rest.Client, clock clock.Clock, logger *zap.Logger) *Surroundings {
	s := &Surroundings{
		services: watch.NewStore(map[string]watch.IndexFunc[*corev1.Service]{
			byNamespace: func(s *corev1.Service) []string { return []string{s.Namespace} },
		}),
		classes: watch.NewStore[*nodev1.RuntimeClass](nil),
	}
	o := watch.Options{Clock: clock, Logger: logger}
	s.ofServices = watch.NewReflector(client.Resource(core.Services, ""), func() *corev1.Service { return new(corev1.Service) }, s.services, o)
	s.ofClasses = watch.NewReflector(client.Resource(core.RuntimeClasses, ""), func() *nodev1.RuntimeClass { return new(nodev1.RuntimeClass) }, s.classes, o)
	s.servicesRead = s.ofServices.Synced()
	return s
}

// Run follows services and classes until ctx ends.
func (s *Surroundings) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { _ = s.ofClasses.Run(ctx) }) // ends with ctx only, as below
	err := s.ofServices.Run(ctx)
	both.Wait()
	return err
}

// Services are those of a namespace.
func (s *Surroundings) Services(namespace string) []*corev1.Service {
	return s.services.ByIndex(byNamespace, namespace)
}

// WaitServices waits until the services have been read once: a container that
// is started earlier would not see existing ones.
func (s *Surroundings) WaitServices(ctx context.Context) error {
	select {
	case <-s.servicesRead:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("services have not yet been read at least once, cannot construct envvars: %w", ctx.Err())
	}
}

// Handler is the runtime's handler of a class.
func (s *Surroundings) Handler(class string) (string, error) {
	found, ok := s.classes.Get("", class)
	if !ok {
		return "", fmt.Errorf("RuntimeClass %q not found", class)
	}
	return found.Handler, nil
}
