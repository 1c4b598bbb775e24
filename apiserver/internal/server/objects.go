package server

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// objects looks up what service account tokens are bound to.
type objects struct {
	serviceAccounts, pods, nodes registry.Resource
	secrets                      *registry.Store[*core.Secret]
	logger                       *zap.Logger
}

func (o objects) ServiceAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error) {
	return lookUp[*core.ServiceAccount](ctx, o.serviceAccounts, namespace, name)
}

func (o objects) Pod(ctx context.Context, namespace, name string) (*core.Pod, error) {
	return lookUp[*core.Pod](ctx, o.pods, namespace, name)
}

func (o objects) Secret(ctx context.Context, namespace, name string) (*core.Secret, error) {
	return lookUp[*core.Secret](ctx, o.secrets, namespace, name)
}

func (o objects) Node(ctx context.Context, name string) (*core.Node, error) {
	return lookUp[*core.Node](ctx, o.nodes, "", name)
}

// lookUp asks the cache first, and the store where the cache does not have the
// object: it may be younger than the cache.
func lookUp[T core.Object](ctx context.Context, resource registry.Resource, namespace, name string) (obj T, err error) {
	encoded, err := resource.Get(ctx, namespace, name, "0")
	if apierrors.IsNotFound(err) {
		encoded, err = resource.Get(ctx, namespace, name, "")
	}
	if err != nil {
		return obj, err
	}
	decoded, err := resource.Decode(encoded)
	if err != nil {
		return obj, err
	}
	obj, ok := decoded.(T)
	if !ok {
		return obj, fmt.Errorf("%s %s/%s is a %T", resource.Info().Name, namespace, name, decoded)
	}
	return obj, nil
}
