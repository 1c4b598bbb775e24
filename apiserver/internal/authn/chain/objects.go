package chain

import (
	"context"

	"go.uber.org/zap"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Objects looks up the objects that service account tokens are bound to; it
// implements serviceaccount.Objects.
type Objects struct {
	ServiceAccounts, Pods, Nodes registry.Resource
	Secrets                      *registry.Store[*core.Secret]
	Logger                       *zap.Logger
}

// ServiceAccount implements serviceaccount.Objects.
func (o Objects) ServiceAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error) {
	return registry.Find[*core.ServiceAccount](ctx, o.ServiceAccounts, namespace, name)
}

// Pod implements serviceaccount.Objects.
func (o Objects) Pod(ctx context.Context, namespace, name string) (*core.Pod, error) {
	return registry.Find[*core.Pod](ctx, o.Pods, namespace, name)
}

// Secret implements serviceaccount.Objects.
func (o Objects) Secret(ctx context.Context, namespace, name string) (*core.Secret, error) {
	return registry.Find[*core.Secret](ctx, o.Secrets, namespace, name)
}

// Node implements serviceaccount.Objects.
func (o Objects) Node(ctx context.Context, name string) (*core.Node, error) {
	return registry.Find[*core.Node](ctx, o.Nodes, "", name)
}

// TokenUsed implements serviceaccount.Objects.
func (o Objects) TokenUsed(ctx context.Context, secret *core.Secret, date string) {
	_, err := o.Secrets.UpdateTyped(ctx, secret.Namespace, secret.Name, "", func(s *core.Secret) error {
		metav1.SetMetaDataLabel(&s.ObjectMeta, serviceaccount.LastUsed, date)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		o.Logger.Warn("it can't be written down that a service account token in a secret was used",
			zap.String("secret", secret.Namespace+"/"+secret.Name), zap.Error(err))
	}
}
