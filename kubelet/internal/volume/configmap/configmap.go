// Package configmap makes the content of volumes that show a config map.
//
// Package volume and the projected kind call it. It writes nothing.
package configmap

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/keys"
	"kctl/proto/core"
)

// Getter reads config maps; its errors are the API's.
type Getter interface {
	ConfigMap(ctx context.Context, namespace, name string) (*core.ConfigMap, error)
}

// Payload is the content for a source in the pod's namespace.
func Payload(ctx context.Context, get Getter, namespace string, source *corev1.ConfigMapProjection,
	d keys.Defaults) (atomic.Payload, error) {
	optional := ptr.Deref(source.Optional, false)
	object, err := get.ConfigMap(ctx, namespace, source.Name)
	if apierrors.IsNotFound(err) && optional {
		return atomic.Payload{}, nil
	}
	if err != nil {
		return nil, err
	}
	values := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for key, value := range object.Data {
		values[key] = []byte(value)
	}
	maps.Copy(values, object.BinaryData)
	payload, err := keys.Payload(keys.Source{What: "config", Values: values, Items: source.Items, Optional: optional}, d)
	if err != nil {
		return nil, fmt.Errorf("configmap %w", err)
	}
	return payload, nil
}
