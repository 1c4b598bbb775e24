// Package downwardapi makes the content of volumes that tell a pod about
// itself.
//
// Package volume and the projected kind call it. It is pure.
package downwardapi

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/fieldpath"
	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/keys"
	"kctl/proto/core"
)

// Payload is the content for items; allocatable is the node's, for limits that
// a container does not set.
func Payload(pod *core.Pod, items []corev1.DownwardAPIVolumeFile, allocatable corev1.ResourceList,
	d keys.Defaults) (atomic.Payload, error) {
	payload := make(atomic.Payload, len(items))
	var errs []error
	for _, item := range items {
		value, err := valueOf(pod, &item, allocatable)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", item.Path, err))
			continue
		}
		payload[item.Path] = d.File([]byte(value), item.Mode, item.User)
	}
	return payload, errors.Join(errs...)
}

func valueOf(pod *core.Pod, item *corev1.DownwardAPIVolumeFile, allocatable corev1.ResourceList) (string, error) {
	switch {
	case item.FieldRef != nil:
		return fieldpath.Metadata(pod, item.FieldRef.FieldPath)
	case item.ResourceFieldRef != nil:
		return fieldpath.Resource(pod, "", item.ResourceFieldRef, allocatable)
	}
	return "", errors.New("has neither fieldRef nor resourceFieldRef")
}
