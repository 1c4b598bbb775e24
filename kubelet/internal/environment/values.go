package environment

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/fieldpath"
)

// valueFrom is nil for an optional value that does not exist.
func (m *builder) valueFrom(v corev1.EnvVar) (*string, error) {
	switch from := v.ValueFrom; {
	case from.FieldRef != nil:
		value, err := m.fieldValue(from.FieldRef)
		return &value, err
	case from.ResourceFieldRef != nil:
		value, err := m.resourceValue(from.ResourceFieldRef)
		return &value, err
	case from.ConfigMapKeyRef != nil:
		return m.configMapKey(from.ConfigMapKeyRef)
	case from.SecretKeyRef != nil:
		return m.secretKey(from.SecretKeyRef)
	case from.FileKeyRef != nil:
		return m.fileKey(from.FileKeyRef)
	}
	return nil, fmt.Errorf("environment variable %s: valueFrom has no source", v.Name)
}

func (m *builder) resourceValue(ref *corev1.ResourceFieldSelector) (string, error) {
	var allocatable corev1.ResourceList
	if m.Allocatable != nil {
		allocatable = m.Allocatable()
	}
	if ref.ContainerName == "" { // also for ephemeral containers
		return fieldpath.ContainerResource(m.Pod, m.Spec, ref, allocatable)
	}
	return fieldpath.Resource(m.Pod, m.Spec.Name, ref, allocatable)
}

func (m *builder) configMapKey(ref *corev1.ConfigMapKeySelector) (*string, error) {
	object, err := m.Objects.ConfigMap(m.ctx, m.Pod.Namespace, ref.Name)
	if err != nil {
		return nil, ignoreAbsent(err, ref.Optional)
	}
	if value, ok := object.Data[ref.Key]; ok {
		return &value, nil
	}
	return nil, m.noKey("ConfigMap", ref.Name, ref.Key, ref.Optional)
}

func (m *builder) secretKey(ref *corev1.SecretKeySelector) (*string, error) {
	object, err := m.Objects.Secret(m.ctx, m.Pod.Namespace, ref.Name)
	if err != nil {
		return nil, ignoreAbsent(err, ref.Optional)
	}
	if value, ok := object.Data[ref.Key]; ok {
		text := string(value)
		return &text, nil
	}
	return nil, m.noKey("Secret", ref.Name, ref.Key, ref.Optional)
}

// ignoreAbsent returns err, or nil if the object is optional and was not found.
func ignoreAbsent(err error, optional *bool) error {
	if ptr.Deref(optional, false) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// noKey returns the error for a missing key; nil if the key is optional.
func (m *builder) noKey(kind, name, key string, optional *bool) error {
	if ptr.Deref(optional, false) {
		return nil
	}
	return fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, m.Pod.Namespace, name)
}

// fieldValue is a field of the pod; the addresses come from the sandbox, which
// is more recent than the pod in the API.
func (m *builder) fieldValue(ref *corev1.ObjectFieldSelector) (string, error) {
	switch ref.FieldPath {
	case "status.podIP", "status.podIPs":
		ips, err := m.PodIPs()
		if err != nil {
			return "", err
		}
		return addresses(ips, ref.FieldPath == "status.podIPs"), nil
	case "status.hostIP", "status.hostIPs":
		if m.HostIPs == nil {
			return "", fmt.Errorf("fieldRef %s: the node's addresses are not known", ref.FieldPath)
		}
		return addresses(m.HostIPs(), ref.FieldPath == "status.hostIPs"), nil
	case "spec.nodeName":
		if m.Pod.Spec.NodeName == "" {
			return m.NodeName, nil
		}
		return m.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return m.Pod.Spec.ServiceAccountName, nil
	}
	return fieldpath.Metadata(m.Pod, ref.FieldPath)
}

func addresses(ips []string, all bool) string {
	switch {
	case all:
		return strings.Join(ips, ",")
	case len(ips) > 0:
		return ips[0]
	}
	return ""
}
