package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/registry"
)

// services resolves the services that webhooks name.
type services struct {
	services *lookup.Objects[*corev1.Service]
	slices   *registry.Store[*discoveryv1.EndpointSlice]
}

func (s services) Service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return s.services.Get(ctx, namespace, name)
}

func (s services) Slices(ctx context.Context, namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
	slices, _, err := s.slices.ListTyped(ctx, namespace, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name}), ResourceVersion: "0",
	})
	return slices, err
}
