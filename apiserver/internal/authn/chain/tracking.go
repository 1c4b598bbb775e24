package chain

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// TrackTokens creates the ConfigMap that says since when the use of tokens in
// secrets is recorded, or adds the date if it has none.
func TrackTokens(ctx context.Context, configMaps *registry.Store[*core.ConfigMap], clock clock.PassiveClock) error {
	const tokenTracking, since = serviceaccount.Tracking, serviceaccount.TrackingSince
	today := map[string]string{since: serviceaccount.Date(clock.Now())}
	found, err := registry.Find[*core.ConfigMap](ctx, configMaps, metav1.NamespaceSystem, tokenTracking)
	switch {
	case apierrors.IsNotFound(err):
		_, err = configMaps.CreateTyped(ctx, &core.ConfigMap{
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
	_, err = configMaps.UpdateTyped(ctx, metav1.NamespaceSystem, tokenTracking, "", func(m *core.ConfigMap) error {
		m.Data = today
		return nil
	})
	return err
}
