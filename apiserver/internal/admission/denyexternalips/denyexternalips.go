// Package denyexternalips refuses new external IPs of services, which may not
// be theirs; those a service already has may stay. It is off by default.
package denyexternalips

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
)

// Name is upstream's name.
const Name = "DenyServiceExternalIPs"

// Plugin is the plugin.
type Plugin struct{ admission.OnWrites }

var errDenied = errors.New("Use of external IPs is denied by admission control") //nolint:staticcheck // upstream's words

// Validate refuses new addresses.
func (Plugin) Validate(_ context.Context, a *admission.Attributes) error {
	service, ok := a.Object.(*corev1.Service)
	if !ok || a.Subresource != "" {
		return nil
	}
	var had []string
	if old, ok := a.OldObject.(*corev1.Service); ok {
		had = old.Spec.ExternalIPs
	}
	for _, address := range service.Spec.ExternalIPs {
		if !slices.Contains(had, address) {
			return errDenied
		}
	}
	return nil
}
