// Package service follows the cluster's services, which pods see as environment
// variables (Kubernetes docs, "Service", "Environment variables").
//
// The kubelet runs it beside the source of pods; package environment asks it. It
// changes nothing in the cluster.
package service

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// byNamespace is the index of services.
const byNamespace = "namespace"

// Lister has the services, as far as known from the API server.
type Lister struct {
	services  *watch.Store[*corev1.Service]
	reflector *watch.Reflector[*corev1.Service]
	synced    <-chan struct{}
}

// NewLister returns an empty Lister; Run fills it.
func NewLister(client *rest.Client, clock clock.Clock, logger *zap.Logger) *Lister {
	l := &Lister{services: watch.NewStore(map[string]watch.IndexFunc[*corev1.Service]{
		byNamespace: func(s *corev1.Service) []string { return []string{s.Namespace} },
	})}
	l.reflector = watch.NewReflector(client.Resource(core.Services, ""), func() *corev1.Service { return new(corev1.Service) }, l.services,
		watch.Options{Clock: clock, Logger: logger})
	l.synced = l.reflector.Synced()
	return l
}

// Run follows the services until ctx ends.
func (l *Lister) Run(ctx context.Context) error { return l.reflector.Run(ctx) }

// List returns the services of a namespace.
func (l *Lister) List(namespace string) []*corev1.Service {
	return l.services.ByIndex(byNamespace, namespace)
}

// WaitForSync waits until the services have been read once: a container that is
// started earlier would not see existing ones.
func (l *Lister) WaitForSync(ctx context.Context) error {
	select {
	case <-l.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("services have not yet been read at least once, cannot construct envvars: %w", ctx.Err())
	}
}
