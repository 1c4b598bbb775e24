package environment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// Events receives messages for users in a pod's event list.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
}

// Objects reads config maps and secrets. It returns the API's errors, so that
// "not found" can be recognised.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*core.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*core.Secret, error)
}

// Sources provides the values of all pods' variables. All functions may be
// called from several goroutines at once.
type Sources struct {
	Events   Events
	Objects  Objects
	NodeName string
	// HostIPs are the node's addresses, for fieldRef status.hostIP(s).
	HostIPs func() []string
	// Allocatable is the node's, for resourceFieldRef limits that the container
	// does not set. May be nil.
	Allocatable func() corev1.ResourceList
	// Services returns the services that a container in the namespace sees as
	// variables; nil for none.
	Services func(namespace string) []*corev1.Service
	// WaitForServices waits until Services knows them; nil if it does at once. Only
	// pods from the API server wait for it: the API server itself may be waiting
	// for others.
	WaitForServices func(ctx context.Context) error
}

// Container is the container whose environment is built.
type Container struct {
	Pod  *core.Pod
	Spec *core.Container
	// PodIPs waits for the pod's addresses. It is called only if a variable is one of
	// them.
	PodIPs func() ([]string, error)
	// ReadFile reads a file of one of the pod's own volumes; nil if there are no files at
	// all.
	ReadFile func(volume, path string) ([]byte, error)
}

// Environment is a container's environment: later definitions of a name win, at
// the position of the first.
type Environment struct {
	names  []string
	values map[string]string
	size   int // of all values, in bytes
	// services can be referred to, and are added at the end unless the container
	// defines something of their name.
	services map[string]string
}

// builder builds one environment.
type builder struct {
	*Sources
	Container
	ctx context.Context
	*Environment
}

// Build builds a container's environment in upstream's order: services, envFrom,
// env.
func (s *Sources) Build(ctx context.Context, c Container) (*Environment, error) {
	if s.WaitForServices != nil && !podmanager.IsStatic(c.Pod) {
		if err := s.WaitForServices(ctx); err != nil {
			return nil, err
		}
	}
	m := &builder{Sources: s, Container: c, ctx: ctx, Environment: &Environment{
		values: map[string]string{}, services: s.serviceVariables(c.Pod),
	}}
	for _, from := range c.Spec.EnvFrom {
		if err := m.addFrom(from); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Spec.Env {
		if err := m.add(v); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.services)) {
		if _, defined := m.values[name]; !defined {
			if err := m.set(name, m.services[name]); err != nil {
				return nil, err
			}
		}
	}
	return m.Environment, nil
}

// Values returns the variables by name; the caller must not change them.
func (e *Environment) Values() map[string]string { return e.values }

func (e *Environment) set(name, value string) error {
	if _, known := e.values[name]; !known {
		e.names = append(e.names, name)
	}
	e.size += len(value) - len(e.values[name])
	e.values[name] = value
	if e.size > maxStrings {
		return fmt.Errorf("environment variable %s: %w", name, errTooManyStrings)
	}
	return nil
}

// KeyValues returns the variables in CRI's form.
func (e *Environment) KeyValues() []*runtimeapi.KeyValue {
	kv := make([]*runtimeapi.KeyValue, len(e.names))
	for i, name := range e.names {
		kv[i] = &runtimeapi.KeyValue{Key: name, Value: []byte(e.values[name])}
	}
	return kv
}

// addFrom adds all keys of a config map or secret.
func (m *builder) addFrom(from corev1.EnvFromSource) error {
	values := map[string]string{}
	var optional *bool
	var err error
	switch {
	case from.ConfigMapRef != nil:
		optional = from.ConfigMapRef.Optional
		var object *core.ConfigMap
		if object, err = m.Objects.ConfigMap(m.ctx, m.Pod.Namespace, from.ConfigMapRef.Name); err == nil {
			values = object.Data
		}
	case from.SecretRef != nil:
		optional = from.SecretRef.Optional
		var secret *core.Secret
		if secret, err = m.Objects.Secret(m.ctx, m.Pod.Namespace, from.SecretRef.Name); err == nil {
			for key, value := range secret.Data {
				values[key] = string(value)
			}
		}
	}
	if err != nil {
		return ignoreAbsent(err, optional)
	}
	var invalid []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := from.Prefix + key
		if len(validation.IsRelaxedEnvVarName(name)) > 0 {
			invalid = append(invalid, key)
			continue
		}
		if err := m.set(name, values[key]); err != nil {
			return err
		}
	}
	if len(invalid) > 0 {
		m.Events.Eventf(m.Pod, corev1.EventTypeWarning, "InvalidEnvironmentVariableNames",
			"Keys [%s] from the EnvFrom source of container %s were skipped since they are considered invalid environment variable names.",
			strings.Join(invalid, ", "), m.Spec.Name)
	}
	return nil
}

// add adds one variable of the container's env.
func (m *builder) add(v corev1.EnvVar) error {
	value, err := m.expand(v.Value)
	if err != nil {
		return fmt.Errorf("environment variable %s: %w", v.Name, err)
	}
	if v.ValueFrom != nil {
		found, err := m.valueFrom(v)
		if err != nil {
			return err
		}
		if found == nil {
			return nil // an optional key that is not there
		}
		value = *found
	}
	return m.set(v.Name, value)
}
