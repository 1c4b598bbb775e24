// Package namespace holds what is particular to namespaces: they start Active
// with the finalizer "kubernetes", and a deleted one stays, Terminating, until
// the loop that empties it has removed that finalizer through /finalize.
package namespace

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of namespaces.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.Namespace] {
	return registry.Strategy[*core.Namespace]{
		Resource: core.Namespaces, Singular: "namespace", ShortNames: []string{"ns"},
		Verbs:         []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		StoragePrefix: "namespaces",
		New:           func() *core.Namespace { return new(core.Namespace) },
		Default:       setDefaults,
		Create: registry.CreateStrategy[*core.Namespace]{
			Prepare:      prepareForCreate,
			ValidateName: check.NameIsLabel,
			Validate:     func(_ context.Context, ns *core.Namespace) field.ErrorList { return validate(ns) },
		},
		Update:       registry.UpdateStrategy[*core.Namespace]{AllowUnconditional: true, Prepare: prepareForUpdate},
		Status:       &registry.UpdateStrategy[*core.Namespace]{Prepare: prepareStatus, Validate: validateStatus},
		Subresources: map[string]registry.UpdateStrategy[*core.Namespace]{"finalize": finalizeChange()},
		Delete: registry.DeleteStrategy[*core.Namespace]{
			NoGracePeriod: true,
			Begin:         beginDelete,
			Held:          func(ns *core.Namespace) bool { return len(ns.Spec.Finalizers) > 0 },
		},
		Read: registry.ReadStrategy[*core.Namespace]{
			Fields: func(ns *core.Namespace) fields.Set {
				return fields.Set{"name": ns.Name, "status.phase": string(ns.Status.Phase)}
			},
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("Status", "The status of the namespace"), cell.AgeColumn(),
			},
			Row: func(ns *core.Namespace) []any {
				return []any{ns.Name, string(ns.Status.Phase), cell.Age(clock.Now(), ns.CreationTimestamp)}
			},
		},
	}
}

func validate(ns *core.Namespace) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "finalizers")
	for _, name := range ns.Spec.Finalizers {
		errs = append(errs, check.QualifiedName(string(name), path)...)
		for _, err := range registry.ValidateQualifiedFinalizers([]corev1.FinalizerName{name}, path.Upstream()) {
			err.Field = path.String() // the first of a list of one
			errs = append(errs, err)
		}
	}
	return errs
}

// setDefaults also maintains the label by which selectors can name a namespace;
// users can't change it.
func setDefaults(ns *core.Namespace) {
	if ns.Name != "" {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
}

func prepareForCreate(_ context.Context, ns *core.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	setDefaults(ns) // a generated name is known only now
}

func prepareForUpdate(_ context.Context, ns, old *core.Namespace) {
	ns.Spec.Finalizers = old.Spec.Finalizers
	ns.Status = old.Status
}

func prepareStatus(_ context.Context, ns, old *core.Namespace) { ns.Spec = old.Spec }

func validateStatus(_ context.Context, ns, _ *core.Namespace) field.ErrorList {
	path := field.NewPath("status", "Phase")
	if ns.DeletionTimestamp.IsZero() {
		if ns.Status.Phase != corev1.NamespaceActive {
			return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
		}
		return nil
	}
	if ns.Status.Phase != corev1.NamespaceTerminating {
		return field.ErrorList{field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}

// finalizeChange guards /finalize, which changes spec.finalizers and nothing
// else.
func finalizeChange() registry.UpdateStrategy[*core.Namespace] {
	return registry.UpdateStrategy[*core.Namespace]{
		ResetFields: []string{"status"},
		Prepare:     func(_ context.Context, ns, old *core.Namespace) { ns.Status = old.Status },
		Validate: func(_ context.Context, ns, _ *core.Namespace) field.ErrorList {
			var errs field.ErrorList
			path := field.NewPath("spec", "finalizers")
			for i, name := range ns.Spec.Finalizers {
				errs = append(errs, check.QualifiedName(string(name), path.Index(i))...)
			}
			if len(errs) == 0 {
				errs = registry.ValidateQualifiedFinalizers(ns.Spec.Finalizers, path.Upstream())
			}
			return errs
		},
	}
}

// beginDelete marks a namespace as terminating; its spec's finalizers keep it
// until it is empty.
func beginDelete(ns *core.Namespace) {
	if len(ns.Spec.Finalizers) > 0 {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
}
