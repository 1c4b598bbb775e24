package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

// cleanInterval is how often unused tokens are looked for; their labels have a resolution of
// days.
const cleanInterval = 24 * time.Hour

// legacyTokens invalidates auto-generated tokens in secrets that no pod mounts
// and that have not been used for a period, and removes the secrets when they
// have been invalid for as long again (Kubernetes docs, "Legacy ServiceAccount
// token cleaner").
type legacyTokens struct {
	secrets, accounts, pods, maps registry.Resource
	period                        time.Duration
	clock                         clock.Clock
	logger                        *zap.Logger
}

func newLegacyTokens(d *Dependencies) (Loop, error) {
	l := &legacyTokens{period: d.LegacyTokenPeriod, clock: d.Clock, logger: d.Logger}
	for resource, store := range map[core.Resource]*registry.Resource{
		core.Secrets: &l.secrets, core.ServiceAccounts: &l.accounts, core.Pods: &l.pods, core.ConfigMaps: &l.maps,
	} {
		var err error
		if *store, err = d.Store(resource); err != nil {
			return nil, err
		}
	}
	return l.run, nil
}

func (l *legacyTokens) run(ctx context.Context) error {
	for failures := 0; ; {
		pause := cleanInterval
		if err := l.clean(ctx); err != nil && ctx.Err() == nil {
			failures++
			pause = retryPolicy.Delay(failures)
			l.logger.Warn("unused service account tokens could not be cleaned up, trying again", zap.Duration("after", pause), zap.Error(err))
		} else {
			failures = 0
		}
		if err := backoff.Sleep(ctx, l.clock, pause); err != nil {
			return err
		}
	}
}

// clean looks at all tokens once. No token is known to be unused before use has
// been recorded for a whole period.
func (l *legacyTokens) clean(ctx context.Context) error {
	since, tracked, err := l.trackedSince(ctx)
	if err != nil || !tracked || l.clock.Now().Before(since.Add(l.period)) {
		return err
	}
	list, err := l.secrets.List(ctx, "", registry.ListOptions{Fields: secretsOf(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return err
	}
	var errs []error
	for _, item := range list.Items {
		obj, err := l.secrets.Decode(item)
		if err != nil {
			return err
		}
		secret := obj.(*core.Secret)
		if err := l.checkToken(ctx, secret); err != nil {
			errs = append(errs, fmt.Errorf("%s/%s: %w", secret.Namespace, secret.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (l *legacyTokens) trackedSince(ctx context.Context) (since time.Time, tracked bool, err error) {
	tracking, err := registry.GetStored[*core.ConfigMap](ctx, l.maps, metav1.NamespaceSystem, serviceaccount.Tracking)
	if apierrors.IsNotFound(err) {
		return since, false, nil
	}
	if err != nil {
		return since, false, err
	}
	since, err = time.Parse(time.DateOnly, tracking.Data[serviceaccount.TrackingSince])
	return since, err == nil, nil
}

// checkToken invalidates one token, or removes it, if it is time.
func (l *legacyTokens) checkToken(ctx context.Context, secret *core.Secret) error {
	if secret.DeletionTimestamp != nil || l.isWithinPeriod(secret.CreationTimestamp.Time) {
		return nil
	}
	if used, err := time.Parse(time.DateOnly, secret.Labels[serviceaccount.LastUsed]); err == nil &&
		l.isWithinPeriod(used.Add(cleanInterval)) {
		return nil
	}
	if unused, err := l.isUnused(ctx, secret); err != nil || !unused {
		return err
	}
	since := secret.Labels[serviceaccount.InvalidSince]
	invalid, err := time.Parse(time.DateOnly, since)
	switch {
	case since == "" || err != nil:
		return l.markInvalid(ctx, secret)
	case l.isWithinPeriod(invalid.Add(cleanInterval)):
		return nil
	}
	l.logger.Info("removing a service account token that has been out of use for long", zap.String("secret", secret.Namespace+"/"+secret.Name))
	_, _, err = l.secrets.Delete(ctx, secret.Namespace, secret.Name, registry.Admission{}, &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if apierrors.IsConflict(err) {
		return nil // it was used just now
	}
	return ignoreNotFound(err, "remove the token")
}

func (l *legacyTokens) isWithinPeriod(t time.Time) bool { return t.After(l.clock.Now().Add(-l.period)) }

// isUnused reports whether a token was auto-generated for its account and no
// pod mounts it.
func (l *legacyTokens) isUnused(ctx context.Context, secret *core.Secret) (bool, error) {
	account, err := registry.GetStored[*core.ServiceAccount](ctx, l.accounts, secret.Namespace,
		secret.Annotations[corev1.ServiceAccountNameKey])
	if err != nil {
		return false, ignoreNotFound(err, "look up the service account")
	}
	if !serviceaccount.Automatic(account, secret.Name) {
		return false, nil
	}
	mounted, err := anyMatches(ctx, l.pods, secret.Namespace, func(pod *core.Pod) bool {
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.Secret != nil && v.Secret.SecretName == secret.Name {
				return true
			}
		}
		return false
	})
	return !mounted, err
}

func (l *legacyTokens) markInvalid(ctx context.Context, secret *core.Secret) error {
	key := informer.Key{Namespace: secret.Namespace, Name: secret.Name}
	l.logger.Info("taking a service account token out of use that has not been used for long", zap.String("secret", key.String()))
	err := modify(ctx, l.secrets, registry.Target{Namespace: key.Namespace, Name: key.Name}, func(current core.Object) (core.Object, error) {
		now, ok := current.(*core.Secret)
		if ok && now.UID == secret.UID && now.Labels[serviceaccount.LastUsed] == secret.Labels[serviceaccount.LastUsed] {
			metav1.SetMetaDataLabel(&now.ObjectMeta, serviceaccount.InvalidSince, serviceaccount.Date(l.clock.Now()))
		}
		return current, nil
	})
	return ignoreNotFound(err, "take the token out of use")
}
