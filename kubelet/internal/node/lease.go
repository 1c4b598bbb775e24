package node

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// runLease renews the node's lease four times in its duration.
func (m *Manager) runLease(ctx context.Context) error {
	leases := m.config.Client.Resource(core.Leases, core.NamespaceNodeLease)
	var lease *core.Lease
	failures := 0
	var others leaseRival
	for ctx.Err() == nil {
		wait := m.config.LeaseDuration / 4
		next, err := m.renew(ctx, leases, lease)
		if conflict := apierrors.IsConflict(err); (err == nil || conflict) && others.renewed(conflict) {
			m.recordRival()
		}
		if err == nil {
			lease, failures = next, 0
		} else {
			lease = nil // somebody else's write, or a deletion: start from what is there
			failures++
			wait = retry.Delay(failures)
			// The first attempts may come before the namespace does.
			if failures == 5 && ctx.Err() == nil {
				m.config.Logger.Warn("node lease not renewed, will retry", zap.Error(err))
			}
		}
		_ = backoff.Sleep(ctx, m.config.Clock, wait)
	}
	return ctx.Err()
}

// renew updates the lease; known is what the last renewal returned.
func (m *Manager) renew(ctx context.Context, leases rest.Resource, known *core.Lease) (*core.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, m.config.LeaseDuration/4)
	defer cancel()
	if known == nil {
		known = &core.Lease{}
		err := leases.Get(ctx, m.config.Name, known)
		if apierrors.IsNotFound(err) {
			known = &core.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.config.Name, Namespace: core.NamespaceNodeLease}}
		} else if err != nil {
			return nil, fmt.Errorf("get lease: %w", err)
		}
	}
	lease := known.DeepCopy()
	now := metav1.NewMicroTime(m.config.Clock.Now())
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:       &m.config.Name,
		RenewTime:            &now,
		LeaseDurationSeconds: new(int32(m.config.LeaseDuration / time.Second)),
	}
	if node := m.Node(); node.UID != "" {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	answer := &core.Lease{}
	if lease.ResourceVersion == "" {
		if err := leases.Create(ctx, lease, answer); err != nil {
			return nil, fmt.Errorf("create lease: %w", err)
		}
		return answer, nil
	}
	if err := leases.Update(ctx, lease.Name, lease, answer); err != nil {
		return nil, fmt.Errorf("update lease: %w", err)
	}
	return answer, nil
}
