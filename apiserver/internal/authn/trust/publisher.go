package trust

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/proto/backoff"
	"kctl/proto/clientauth"
	"kctl/proto/core"
	"kctl/proto/pki"
)

// Name is the ConfigMap's, in kube-system.
const Name = "extension-apiserver-authentication"

// publishInterval is how often the ConfigMap is checked and brought up to date.
const publishInterval = 10 * time.Second

// Publisher maintains the ConfigMap.
type Publisher struct {
	ConfigMaps *registry.Store[*core.ConfigMap]
	// Clients and Proxies are the authorities; nil if none are accepted.
	Clients, Proxies *pki.Authorities
	AllowedNames     []string
	Headers          clientauth.HeaderNames
	Clock            clock.Clock
	Logger           *zap.Logger
}

// Run keeps the ConfigMap up to date until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	for {
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.Logger.Warn("the authorities of clients could not be published, trying again", zap.Error(err), zap.Duration("after", publishInterval))
		}
		if err := backoff.Sleep(ctx, p.Clock, publishInterval); err != nil {
			return err
		}
	}
}

// publish writes only if something is missing.
func (p *Publisher) publish(ctx context.Context) error {
	current, err := registry.Find[*core.ConfigMap](ctx, p.ConfigMaps, core.NamespaceSystem, Name)
	if apierrors.IsNotFound(err) {
		_, err = p.ConfigMaps.CreateTyped(ctx, &core.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceSystem, Name: Name}, Data: p.mergedData(nil),
		})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	} else if err != nil || maps.Equal(current.Data, p.mergedData(current.Data)) {
		return err
	}
	_, err = p.ConfigMaps.UpdateTyped(ctx, core.NamespaceSystem, Name, "", func(obj *core.ConfigMap) error {
		obj.Data = p.mergedData(obj.Data)
		return nil
	})
	return err
}
