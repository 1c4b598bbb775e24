// Package secret makes the content of volumes that show a secret.
//
// Package volume and the projected kind call it. It writes nothing.
package secret

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/keys"
	"kctl/proto/core"
)

// Getter reads secrets; its errors are the API's.
type Getter interface {
	Secret(ctx context.Context, namespace, name string) (*core.Secret, error)
}

// Payload is the content for a source in the pod's namespace.
func Payload(ctx context.Context, get Getter, namespace string, source *corev1.SecretProjection, d keys.Defaults) (atomic.Payload, error) {
	optional := ptr.Deref(source.Optional, false)
	object, err := get.Secret(ctx, namespace, source.Name)
	if apierrors.IsNotFound(err) && optional {
		return atomic.Payload{}, nil
	}
	if err != nil {
		return nil, err
	}
	return keys.Payload(keys.Source{What: "secret", Values: object.Data, Items: source.Items, Optional: optional}, d)
}
