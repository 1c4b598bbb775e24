// Package lease keeps the Lease in kube-system that says that this API server is
// alive, under the server's name (package identity) as kube-apiserver does, and deletes those of
// servers that will not come back. Package server runs it. Nobody is elected by these Leases,
// and nobody is reached by them: package endpointreconciler sees to that.
package lease

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/identity"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// label marks the Leases of API servers; its value is the component's name.
const label = "apiserver.kubernetes.io/identity"

// Upstream's periods. A Lease that has not been renewed for leaseDuration is of a server that
// will not come back.
const (
	renewInterval = 10 * time.Second
	leaseDuration = time.Hour
	// stopTimeout is how long the end of the server waits for its Lease to go.
	stopTimeout = 5 * time.Second
)

// Keeper keeps this server's Lease.
type Keeper struct {
	store  *registry.Store[*core.Lease]
	holder string
	clock  clock.WithTicker
	logger *zap.Logger
}

// New returns the Keeper of this process.
func New(store *registry.Store[*core.Lease], clock clock.WithTicker, logger *zap.Logger) *Keeper {
	return &Keeper{store: store, holder: identity.Name() + "_" + string(uuid.NewUUID()), clock: clock, logger: logger}
}

// Run renews the Lease until ctx ends, and then deletes it. It also deletes those that have
// expired.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := k.clock.NewTicker(renewInterval)
	defer ticker.Stop()
	var collected time.Time
	for {
		err := k.renew(ctx)
		if now := k.clock.Now(); now.Sub(collected) >= leaseDuration && err == nil {
			if err = k.collect(ctx, now); err == nil {
				collected = now
			}
		}
		if err != nil && ctx.Err() == nil {
			k.logger.Warn("the leases of API servers may be out of date, trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return k.release(context.WithoutCancel(ctx))
		case <-ticker.C():
		}
	}
}

func (k *Keeper) renew(ctx context.Context) error {
	hold := func(lease *core.Lease) error {
		lease.Labels = labels.Merge(lease.Labels, labelsOn(identity.Hostname()))
		lease.Spec.HolderIdentity = &k.holder
		lease.Spec.LeaseDurationSeconds = new(int32(leaseDuration / time.Second))
		lease.Spec.RenewTime = new(metav1.NewMicroTime(k.clock.Now()))
		return nil
	}
	_, err := k.store.UpdateTyped(ctx, core.NamespaceSystem, identity.Name(), "", hold)
	if apierrors.IsNotFound(err) {
		lease := &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceSystem, Name: identity.Name()}}
		_ = hold(lease)
		_, err = k.store.CreateTyped(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renew lease %s: %w", identity.Name(), err)
	}
	return nil
}

// labelsOn are the labels of the Lease of a server on a host. Linux allows names of hosts that
// no label can have; upstream's servers have no Lease there.
func labelsOn(host string) labels.Set {
	if len(validation.IsValidLabelValue(host)) > 0 {
		return labels.Set{label: identity.Component}
	}
	return labels.Set{label: identity.Component, corev1.LabelHostname: host}
}

// collect deletes the Leases of servers that did not delete them themselves.
func (k *Keeper) collect(ctx context.Context, now time.Time) error {
	leases, _, err := k.store.ListTyped(ctx, core.NamespaceSystem, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{label: identity.Component}),
	})
	if err != nil {
		return fmt.Errorf("list the leases of API servers: %w", err)
	}
	for _, lease := range leases {
		if !expired(lease, now) {
			continue
		}
		// Only this version: a lease that is being renewed stays.
		only := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion}}
		err := k.store.DeleteTyped(ctx, core.NamespaceSystem, lease.Name, only)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete lease %s: %w", lease.Name, err)
		}
	}
	return nil
}

func expired(lease *core.Lease, now time.Time) bool {
	s := lease.Spec
	return s.RenewTime == nil || s.LeaseDurationSeconds == nil ||
		s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second).Before(now)
}

// release deletes the Lease. If the storage is already gone, the Lease expires by itself.
func (k *Keeper) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := k.store.DeleteTyped(ctx, core.NamespaceSystem, identity.Name(), nil); err != nil && !apierrors.IsNotFound(err) {
		k.logger.Info("this server's lease stays until it expires", zap.Error(err))
	}
	return nil
}
