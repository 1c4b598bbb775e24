// Package priority turns a pod's priority class into its priority and its
// preemption policy, and ensures that at most one class is the default.
package priority

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "Priority"

// Classes finds priority classes.
type Classes interface {
	Get(ctx context.Context, namespace, name string) (*schedulingv1.PriorityClass, error)
}

// Defaults knows the classes that are the global default: one or, for a moment
// after two servers wrote at once, several.
type Defaults interface {
	ByIndex(index string) []Class
	// Synced is closed when all classes are known.
	Synced() <-chan struct{}
}

// Class is what Defaults keeps of a class.
type Class struct {
	Name   string
	Value  int32
	Policy corev1.PreemptionPolicy
	Global bool
}

// globalDefault is the index key of the classes that are the global default.
const globalDefault = "default"

// ClassOf extracts from a class what Defaults keeps.
func ClassOf(obj core.Object) Class {
	c := obj.(*schedulingv1.PriorityClass)
	return Class{Name: c.Name, Value: c.Value, Policy: ptr.Deref(c.PreemptionPolicy, corev1.PreemptLowerPriority), Global: c.GlobalDefault}
}

// ByDefault indexes classes under globalDefault, or not at all.
func ByDefault(c Class) string {
	if c.Global {
		return globalDefault
	}
	return ""
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	classes  Classes
	defaults Defaults
}

// New returns the plugin.
func New(classes Classes, defaults Defaults) *Plugin {
	return &Plugin{classes: classes, defaults: defaults}
}

// Admit sets the priority of new pods, and keeps it if an update omits it.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil
	}
	if old, ok := a.OldObject.(*core.Pod); ok && a.Operation == admission.Update {
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = old.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
		}
		return nil
	}
	class, err := p.findClass(ctx, pod.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	if given := pod.Spec.Priority; given != nil && *given != class.Value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from "+
			"the given PriorityClass name", *given, class.Value)
	}
	if given := pod.Spec.PreemptionPolicy; given != nil && *given != class.Policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed "+
			"%s from the given PriorityClass name", *given, class.Policy)
	}
	pod.Spec.PriorityClassName = class.Name
	pod.Spec.Priority = &class.Value
	pod.Spec.PreemptionPolicy = &class.Policy
	return nil
}

// findClass returns the named class, or the default one, or none at all.
func (p *Plugin) findClass(ctx context.Context, name string) (Class, error) {
	if name == "" {
		return p.defaultClass(ctx)
	}
	found, err := p.classes.Get(ctx, "", name)
	if apierrors.IsNotFound(err) {
		return Class{}, fmt.Errorf("no PriorityClass with name %v was found", name)
	}
	if err != nil {
		return Class{}, fmt.Errorf("get PriorityClass %s: %w", name, err)
	}
	return ClassOf(found), nil
}

// defaultClass is the default class; among several, the one with the lowest value.
func (p *Plugin) defaultClass(ctx context.Context) (Class, error) {
	if err := match.Ready(ctx, p.defaults.Synced()); err != nil {
		return Class{}, err
	}
	class := Class{Policy: corev1.PreemptLowerPriority}
	for i, c := range p.defaults.ByIndex(globalDefault) {
		if i == 0 || c.Value < class.Value {
			class = c
		}
	}
	return class, nil
}

// Validate refuses a second default class.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Resource != core.PriorityClasses || a.Subresource != "" {
		return nil
	}
	class, ok := a.Object.(*schedulingv1.PriorityClass)
	if !ok {
		return errors.New("a priority class of an unknown type")
	}
	if !class.GlobalDefault {
		return nil
	}
	if err := match.Ready(ctx, p.defaults.Synced()); err != nil {
		return err
	}
	for _, c := range p.defaults.ByIndex(globalDefault) {
		if c.Name != class.Name {
			return fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", c.Name)
		}
	}
	return nil
}
