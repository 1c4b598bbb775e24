// Package replicationcontroller holds what is particular to replication
// controllers, the predecessors of replica sets.
package replicationcontroller

import (
	"context"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/apps"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/workload"
	"kctl/proto/core"
)

// Served is the resource with its scale.
func Served(o registry.Options) []registry.Served {
	store := registry.NewStore(workload.WithTemplate(strategy(o.Clock), "spec.template", templateOf), o)
	return []registry.Served{{Resource: store, Subresources: []registry.Subresource{
		workload.Scale(store, o.Clock, func(c *corev1.ReplicationController) workload.Replicas {
			return workload.Replicas{
				Desired: c.Spec.Replicas, Current: c.Status.Replicas, Selector: labels.SelectorFromSet(c.Spec.Selector).String(),
			}
		}),
	}}}
}

func templateOf(c *corev1.ReplicationController) *corev1.PodTemplateSpec {
	if c.Spec.Template == nil {
		return &corev1.PodTemplateSpec{}
	}
	return c.Spec.Template
}

func strategy(clock clock.PassiveClock) registry.Strategy[*corev1.ReplicationController] {
	return registry.WithStatus(registry.Strategy[*corev1.ReplicationController]{
		Resource: core.Resource{Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true},
		Singular: "replicationcontroller", ShortNames: []string{"rc"}, Categories: []string{"all"},
		StoragePrefix: "controllers",
		Default:       setDefaults,
		HasGeneration: true,
		Create: registry.CreateStrategy[*corev1.ReplicationController]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, c *corev1.ReplicationController) field.ErrorList { return validate(&c.Spec) },
			Warnings: func(_ context.Context, c *corev1.ReplicationController) []string {
				return workload.NameWarnings(c.Name)
			},
		},
		Update: registry.UpdateStrategy[*corev1.ReplicationController]{
			AllowUnconditional: true,
			Validate:           func(_ context.Context, c, _ *corev1.ReplicationController) field.ErrorList { return validate(&c.Spec) },
		},
		Status: &registry.UpdateStrategy[*corev1.ReplicationController]{
			Validate: func(_ context.Context, c, _ *corev1.ReplicationController) field.ErrorList {
				s := c.Status
				return apps.ReplicasStatus(appsv1.ReplicaSetStatus{
					Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas, ReadyReplicas: s.ReadyReplicas,
					AvailableReplicas: s.AvailableReplicas, ObservedGeneration: s.ObservedGeneration,
				})
			},
		},
		Delete: registry.DeleteStrategy[*corev1.ReplicationController]{OrphansByDefault: true},
		Read: registry.ReadStrategy[*corev1.ReplicationController]{
			Fields: func(c *corev1.ReplicationController) fields.Set {
				return fields.Set{"status.replicas": strconv.Itoa(int(c.Status.Replicas))}
			},
			Columns: cell.Describe(cell.Columns(corev1.ReplicationControllerStatus{}.SwaggerDoc(),
				"Name", "Desired:integer", "Current:integer=replicas", "Ready:integer=readyReplicas", "Age", "Containers*", "Images*",
				"Selector*",
			), map[string]string{
				"Desired":  corev1.ReplicationControllerSpec{}.SwaggerDoc()["replicas"],
				"Selector": corev1.ReplicationControllerSpec{}.SwaggerDoc()["selector"],
			}),
			Row: func(c *corev1.ReplicationController) []any {
				var names, images string
				if c.Spec.Template != nil {
					names, images = cell.Containers(c.Spec.Template.Spec.Containers)
				}
				return []any{
					c.Name, int64(*c.Spec.Replicas), int64(c.Status.Replicas), int64(c.Status.ReadyReplicas),
					cell.Age(clock.Now(), c.CreationTimestamp), names, images, labels.FormatLabels(c.Spec.Selector),
				}
			},
		},
	})
}

// setDefaults sets the selector and the labels to the template's labels.
func setDefaults(c *corev1.ReplicationController) {
	if c.Spec.Template != nil {
		pod.DefaultTemplate(c.Spec.Template)
		if len(c.Spec.Selector) == 0 {
			c.Spec.Selector = maps.Clone(c.Spec.Template.Labels)
		}
		if len(c.Labels) == 0 {
			c.Labels = maps.Clone(c.Spec.Template.Labels)
		}
	}
	workload.DefaultTo(&c.Spec.Replicas, 1)
}

func validate(s *corev1.ReplicationControllerSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := workload.NonnegativeCounts(at, []workload.Count{{Field: "minReadySeconds", Value: s.MinReadySeconds}})
	if len(s.Selector) == 0 {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	}
	if s.Template == nil {
		errs = append(errs, field.Required(at.Child("template"), ""))
	} else {
		selector := labels.SelectorFromSet(s.Selector)
		errs = append(errs, workload.TemplateSelectedBy(s.Template, selector, "ReplicationController", at.Child("template"))...)
	}
	return append(errs, check.Nonnegative(int64(*s.Replicas), at.Child("replicas"))...) // last, as with upstream
}
