package podruntime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/fieldpath"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// maxStrings is the most that Linux accepts as a program's arguments and
// environment together, whatever its limits are (execve(2)), in bytes.
const maxStrings = 6 << 20

// errTooManyStrings stops an expansion that would not fit: a few variables, each of
// which contains the previous one twice, can exceed a machine's memory.
var errTooManyStrings = fmt.Errorf("command, arguments and environment have more than %d bytes, with which Linux starts no program", maxStrings)

// environment is a container's environment while it is put together: later
// definitions of a name win, at the position of the first.
type environment struct {
	names  []string
	values map[string]string
	size   int // of all values
	// services can be referred to, and are added at the end unless the container
	// defines something of their name.
	services map[string]string
}

// environment puts a container's environment together, in the order in which
// upstream does: services, envFrom, env. The pod's addresses are waited for
// only if a variable is one of them.
func (s *podSync) environment(c *core.Container) (*environment, error) {
	if s.WaitServices != nil && !podmanager.IsStatic(s.pod) {
		if err := s.WaitServices(s.ctx); err != nil {
			return nil, err
		}
	}
	e := &environment{values: map[string]string{}, services: s.serviceVariables(s.pod)}
	for _, from := range c.EnvFrom {
		if err := s.addFrom(e, c, from); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		value, err := e.expand(v.Value)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", v.Name, err)
		}
		if v.ValueFrom != nil {
			found, err := s.valueFrom(c, v)
			if err != nil {
				return nil, err
			}
			if found == nil {
				continue // an optional key that is not there
			}
			value = *found
		}
		if e.set(v.Name, value); e.size > maxStrings {
			return nil, fmt.Errorf("environment variable %s: %w", v.Name, errTooManyStrings)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.services)) {
		if _, defined := e.values[name]; !defined {
			e.set(name, e.services[name])
		}
	}
	return e, nil
}

func (e *environment) set(name, value string) {
	if _, known := e.values[name]; !known {
		e.names = append(e.names, name)
	}
	e.size += len(value) - len(e.values[name])
	e.values[name] = value
}

func (e *environment) keyValues() []*runtimeapi.KeyValue {
	kv := make([]*runtimeapi.KeyValue, len(e.names))
	for i, name := range e.names {
		kv[i] = &runtimeapi.KeyValue{Key: name, Value: []byte(e.values[name])}
	}
	return kv
}

// expand replaces $(NAME) by values; $$ is a dollar sign. References to
// undefined names stay as they are.
func (e *environment) expand(text string) (string, error) {
	return expand(text, func(name string) (string, bool) {
		if value, ok := e.values[name]; ok {
			return value, true
		}
		value, ok := e.services[name]
		return value, ok
	})
}

// expandAll expands a command or its arguments.
func (e *environment) expandAll(texts []string) ([]string, error) {
	out, size := make([]string, len(texts)), 0
	for i, text := range texts {
		expanded, err := e.expand(text)
		if size += len(expanded); err != nil || size > maxStrings {
			return nil, errTooManyStrings
		}
		out[i] = expanded
	}
	return out, nil
}

func expand(text string, value func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch {
		case out.Len() > maxStrings:
			return "", errTooManyStrings
		case !found:
			return out.String(), nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && strings.Contains(rest, ")"):
			name, after, _ := strings.Cut(rest[1:], ")")
			if v, ok := value(name); ok {
				out.WriteString(v)
			} else {
				out.WriteString("$(" + name + ")")
			}
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

// addFrom adds all keys of a config map or secret.
func (s *podSync) addFrom(e *environment, c *core.Container, from corev1.EnvFromSource) error {
	values := map[string]string{}
	var optional *bool
	var err error
	switch {
	case from.ConfigMapRef != nil:
		optional = from.ConfigMapRef.Optional
		var m *core.ConfigMap
		if m, err = s.Objects.ConfigMap(s.ctx, s.pod.Namespace, from.ConfigMapRef.Name); err == nil {
			values = m.Data
		}
	case from.SecretRef != nil:
		optional = from.SecretRef.Optional
		var secret *core.Secret
		if secret, err = s.Objects.Secret(s.ctx, s.pod.Namespace, from.SecretRef.Name); err == nil {
			for key, value := range secret.Data {
				values[key] = string(value)
			}
		}
	}
	if err != nil {
		if isTrue(optional) && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	var invalid []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := from.Prefix + key
		if len(validation.IsRelaxedEnvVarName(name)) > 0 {
			invalid = append(invalid, key)
			continue
		}
		e.set(name, values[key])
	}
	if len(invalid) > 0 {
		s.Events.Eventf(s.pod, corev1.EventTypeWarning, "InvalidEnvironmentVariableNames",
			"Keys [%s] from the EnvFrom source of container %s were skipped since they are considered invalid environment variable names.",
			strings.Join(invalid, ", "), c.Name)
	}
	return nil
}

// valueFrom is nil for an optional value that does not exist.
func (s *podSync) valueFrom(c *core.Container, v corev1.EnvVar) (*string, error) {
	ctx, namespace, from := s.ctx, s.pod.Namespace, v.ValueFrom
	switch {
	case from.FieldRef != nil:
		value, err := s.fieldValue(from.FieldRef)
		return &value, err
	case from.ResourceFieldRef != nil:
		var allocatable corev1.ResourceList
		if s.Allocatable != nil {
			allocatable = s.Allocatable()
		}
		if from.ResourceFieldRef.ContainerName == "" { // also for ephemeral containers
			value, err := fieldpath.ContainerResource(s.pod, c, from.ResourceFieldRef, allocatable)
			return &value, err
		}
		value, err := fieldpath.Resource(s.pod, c.Name, from.ResourceFieldRef, allocatable)
		return &value, err
	case from.ConfigMapKeyRef != nil:
		return s.configMapKey(ctx, namespace, from.ConfigMapKeyRef)
	case from.SecretKeyRef != nil:
		return s.secretKey(ctx, namespace, from.SecretKeyRef)
	case from.FileKeyRef != nil:
		return s.fileKey(from.FileKeyRef)
	}
	return nil, fmt.Errorf("environment variable %s: valueFrom names no source", v.Name)
}

func (m *Manager) configMapKey(ctx context.Context, namespace string, ref *corev1.ConfigMapKeySelector) (*string, error) {
	object, err := m.Objects.ConfigMap(ctx, namespace, ref.Name)
	if err != nil {
		if isTrue(ref.Optional) && apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	if value, ok := object.Data[ref.Key]; ok {
		return &value, nil
	}
	if isTrue(ref.Optional) {
		return nil, nil
	}
	return nil, fmt.Errorf("couldn't find key %s in ConfigMap %s/%s", ref.Key, namespace, ref.Name)
}

func (m *Manager) secretKey(ctx context.Context, namespace string, ref *corev1.SecretKeySelector) (*string, error) {
	object, err := m.Objects.Secret(ctx, namespace, ref.Name)
	if err != nil {
		if isTrue(ref.Optional) && apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	if value, ok := object.Data[ref.Key]; ok {
		text := string(value)
		return &text, nil
	}
	if isTrue(ref.Optional) {
		return nil, nil
	}
	return nil, fmt.Errorf("couldn't find key %s in Secret %s/%s", ref.Key, namespace, ref.Name)
}

// fieldValue is a field of the pod; the addresses come from the sandbox, which
// is more recent than the pod in the API.
func (s *podSync) fieldValue(ref *corev1.ObjectFieldSelector) (string, error) {
	switch ref.FieldPath {
	case "status.podIP", "status.podIPs":
		ips, err := s.ips.wait()
		if err != nil {
			return "", err
		}
		return addresses(ips, ref.FieldPath == "status.podIPs"), nil
	case "status.hostIP", "status.hostIPs":
		if s.HostIPs == nil {
			return "", fmt.Errorf("fieldRef %s: the node's addresses are not known", ref.FieldPath)
		}
		return addresses(s.HostIPs(), ref.FieldPath == "status.hostIPs"), nil
	case "spec.nodeName":
		if s.pod.Spec.NodeName == "" {
			return s.NodeName, nil
		}
		return s.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return s.pod.Spec.ServiceAccountName, nil
	}
	return fieldpath.Metadata(s.pod, ref.FieldPath)
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

func isTrue(b *bool) bool { return b != nil && *b }
