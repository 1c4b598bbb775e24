package server

import (
	"context"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/proto/core"
)

// trackTokens makes the ConfigMap that tells since when it is written down which
// tokens in secrets are used, or gives it a date where it has none.
func (s *Server) trackTokens(ctx context.Context) error {
	const tokenTracking, since = serviceaccount.Tracking, serviceaccount.TrackingSince
	today := map[string]string{since: serviceaccount.Date(s.clock.Now())}
	found, err := lookUp[*core.ConfigMap](ctx, s.resources.ConfigMaps, metav1.NamespaceSystem, tokenTracking)
	switch {
	case apierrors.IsNotFound(err):
		_, err = s.resources.ConfigMaps.CreateTyped(ctx, &core.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: tokenTracking}, Data: today,
		})
		if apierrors.IsAlreadyExists(err) { // by another server
			return nil
		}
		return err
	case err != nil:
		return err
	}
	if _, err := time.Parse(time.DateOnly, found.Data[since]); err == nil {
		return nil
	}
	_, err = s.resources.ConfigMaps.UpdateTyped(ctx, metav1.NamespaceSystem, tokenTracking, "", func(m *core.ConfigMap) error {
		m.Data = today
		return nil
	})
	return err
}

// TokenUsed implements serviceaccount.Objects.
func (o objects) TokenUsed(ctx context.Context, secret *core.Secret, date string) {
	_, err := o.secrets.UpdateTyped(ctx, secret.Namespace, secret.Name, "", func(s *core.Secret) error {
		metav1.SetMetaDataLabel(&s.ObjectMeta, serviceaccount.LastUsed, date)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		o.logger.Warn("it can't be written down that a service account token in a secret was used",
			zap.String("secret", secret.Namespace+"/"+secret.Name), zap.Error(err))
	}
}
