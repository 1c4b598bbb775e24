package objects

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// Claims and the volumes that they are bound to are read each time: that happens
// when a pod starts, which needs their current state.

// Claim returns the claim; its error is the API's.
func (o *Objects) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	return claim, o.get(ctx, core.PersistentVolumeClaims, namespace, name, claim)
}

// PersistentVolume returns the volume; its error is the API's.
func (o *Objects) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	volume := &corev1.PersistentVolume{}
	return volume, o.get(ctx, core.PersistentVolumes, "", name, volume)
}

func (o *Objects) get(ctx context.Context, resource core.Resource, namespace, name string, into core.Object) error {
	if o.client == nil {
		return errNoServer
	}
	return allowed(ctx, o.clock, false, func() error { return o.client.Resource(resource, namespace).Get(ctx, name, into) })
}
