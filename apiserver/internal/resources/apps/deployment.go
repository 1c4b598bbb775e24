package apps

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/workload"
	"kctl/proto/core"
)

// templatePath is the path of the template in the group's kinds.
const templatePath = "spec.template"

// Served are the resources of the group apps.
func Served(o registry.Options) []registry.Served {
	deployments := newStore(deployment(o.Clock), o, func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template })
	replicaSets := newStore(replicaSet(o.Clock), o, func(s *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &s.Spec.Template })
	statefulSets := newStore(statefulSet(o.Clock), o, func(s *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &s.Spec.Template })
	daemonSets := newStore(daemonSet(o.Clock), o, func(s *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &s.Spec.Template })
	return []registry.Served{
		scalable(deployments, o.Clock, func(d *appsv1.Deployment) workload.Replicas {
			return replicas(d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector)
		}),
		scalable(replicaSets, o.Clock, func(s *appsv1.ReplicaSet) workload.Replicas {
			return replicas(s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector)
		}),
		scalable(statefulSets, o.Clock, func(s *appsv1.StatefulSet) workload.Replicas {
			return replicas(s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector)
		}),
		{Resource: daemonSets},
		{Resource: registry.NewStore(controllerRevision(o.Clock), o)},
	}
}

func newStore[T core.Object](s registry.Strategy[T], o registry.Options, template func(T) *corev1.PodTemplateSpec) *registry.Store[T] {
	return registry.NewStore(workload.WithTemplate(s, templatePath, template), o)
}

func scalable[T core.Object](store *registry.Store[T], clock clock.PassiveClock, replicas func(T) workload.Replicas) registry.Served {
	return registry.Served{Resource: store, Subresources: []registry.Subresource{workload.Scale(store, clock, replicas)}}
}

func replicas(desired *int32, current int32, selector *metav1.LabelSelector) workload.Replicas {
	return workload.Replicas{Desired: desired, Current: current, Selector: metav1.FormatLabelSelector(selector)}
}

func resource(name, kind string) core.Resource {
	return core.Resource{Group: appsv1.GroupName, Version: "v1", Name: name, Kind: kind, Namespaced: true}
}

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
)

func deployment(clock clock.PassiveClock) registry.Strategy[*appsv1.Deployment] {
	return registry.WithStatus(registry.Strategy[*appsv1.Deployment]{
		Resource: resource("deployments", "Deployment"), Singular: "deployment", ShortNames: []string{"deploy"}, Categories: []string{"all"},
		Default:       func(d *appsv1.Deployment) { defaultDeployment(&d.Spec) },
		HasGeneration: true,
		// Following the rollout of an annotation needs a generation for it.
		DesiredState: func(d *appsv1.Deployment) any { return []any{d.Spec, d.Annotations} },
		Create: registry.CreateStrategy[*appsv1.Deployment]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, d *appsv1.Deployment) field.ErrorList { return validateDeployment(&d.Spec) },
			Warnings:     func(_ context.Context, d *appsv1.Deployment) []string { return workload.NameWarnings(d.Name) },
		},
		Update: registry.UpdateStrategy[*appsv1.Deployment]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, d, old *appsv1.Deployment) field.ErrorList {
				return append(validateDeployment(&d.Spec), check.Unchanged(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))...)
			},
		},
		Status: &registry.UpdateStrategy[*appsv1.Deployment]{
			KeepsGeneration: true,
			ResetFields:     []string{"metadata.labels"},
			Prepare:         func(_ context.Context, d, old *appsv1.Deployment) { d.Labels = old.Labels },
			Validate: func(_ context.Context, d, old *appsv1.Deployment) field.ErrorList {
				return validateDeploymentStatus(&d.Status, &old.Status)
			},
		},
		Read: registry.ReadStrategy[*appsv1.Deployment]{
			Columns: cell.Describe(cell.Columns(appsv1.DeploymentStatus{}.SwaggerDoc(),
				"Name", "Ready=readyReplicas", "Up-to-date=updatedReplicas", "Available=availableReplicas", "Age", "Containers*", "Images*",
				"Selector*",
			), map[string]string{
				"Ready":    "Number of the pod with ready state",
				"Selector": appsv1.DeploymentSpec{}.SwaggerDoc()["selector"],
			}),
			Row: func(d *appsv1.Deployment) []any {
				names, images := cell.Containers(d.Spec.Template.Spec.Containers)
				return []any{
					d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, *d.Spec.Replicas), int64(d.Status.UpdatedReplicas),
					int64(d.Status.AvailableReplicas),
					cell.Age(clock.Now(), d.CreationTimestamp), names, images, metav1.FormatLabelSelector(d.Spec.Selector),
				}
			},
		},
	})
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	pod.DefaultTemplate(&s.Template)
	workload.DefaultTo(&s.Replicas, 1)
	workload.DefaultTo(&s.RevisionHistoryLimit, 10)
	workload.DefaultTo(&s.ProgressDeadlineSeconds, 600)
	if s.Strategy.Type == "" {
		s.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		workload.DefaultTo(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		workload.DefaultTo(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		workload.DefaultTo(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

func validateDeployment(s *appsv1.DeploymentSpec) field.ErrorList {
	errs := check.Nonnegative(int64(*s.Replicas), specPath.Child("replicas"))
	errs = append(errs, workload.Selector(s.Selector, "deployment", specPath.Child("selector"))...)
	errs = append(errs, workload.Template(&s.Template, s.Selector, "ReplicaSet", "invalid label selector", specPath.Child("template"))...)
	errs = append(errs, validateDeploymentStrategy(&s.Strategy, specPath.Child("strategy"))...)
	errs = append(errs, workload.NonnegativeCounts(specPath, []workload.Count{
		{Field: "minReadySeconds", Value: s.MinReadySeconds}, {Field: "revisionHistoryLimit", Value: *s.RevisionHistoryLimit},
		{Field: "progressDeadlineSeconds", Value: *s.ProgressDeadlineSeconds},
	})...)
	if *s.ProgressDeadlineSeconds <= s.MinReadySeconds {
		errs = append(errs, field.Invalid(specPath.Child("progressDeadlineSeconds"), s.ProgressDeadlineSeconds,
			"must be greater than minReadySeconds"))
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
		}
	case appsv1.RollingUpdateDeploymentStrategyType:
		errs := workload.IntOrPercent(*s.RollingUpdate.MaxUnavailable, rolling.Child("maxUnavailable"))
		errs = append(errs, workload.IntOrPercent(*s.RollingUpdate.MaxSurge, rolling.Child("maxSurge"))...)
		if workload.IsZero(s.RollingUpdate.MaxUnavailable) && workload.IsZero(s.RollingUpdate.MaxSurge) {
			errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
		return append(errs, workload.AtMost100Percent(*s.RollingUpdate.MaxUnavailable, rolling.Child("maxUnavailable"))...)
	default:
		return field.ErrorList{field.NotSupported(at, check.GoFieldNames{Value: *s},
			[]appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
	}
	return nil
}

func validateDeploymentStatus(s, old *appsv1.DeploymentStatus) field.ErrorList {
	errs := check.Nonnegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))
	errs = append(errs, workload.NonnegativeCounts(statusPath, []workload.Count{
		{Field: "replicas", Value: s.Replicas}, {Field: "updatedReplicas", Value: s.UpdatedReplicas},
		{Field: "readyReplicas", Value: s.ReadyReplicas},
		{Field: "availableReplicas", Value: s.AvailableReplicas}, {Field: "unavailableReplicas", Value: s.UnavailableReplicas},
		{Field: "terminatingReplicas", Value: ptr.Deref(s.TerminatingReplicas, 0)},
	})...)
	errs = append(errs, notMore(s.UpdatedReplicas, s.Replicas, "updatedReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.ReadyReplicas, s.Replicas, "readyReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.AvailableReplicas, s.Replicas, "availableReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.AvailableReplicas, s.ReadyReplicas, "availableReplicas", "readyReplicas")...)
	return append(errs, validateCollisionCount(s.CollisionCount, old.CollisionCount)...)
}

// notMore checks that one number in a status does not exceed another.
func notMore(n, bound int32, name, of string) field.ErrorList {
	if n > bound {
		return field.ErrorList{field.Invalid(statusPath.Child(name), n, "cannot be greater than "+of)}
	}
	return nil
}

// validateCollisionCount checks that the count of name collisions only grows.
func validateCollisionCount(now, old *int32) field.ErrorList {
	at := statusPath.Child("collisionCount")
	var errs field.ErrorList
	if now != nil {
		errs = append(errs, check.Nonnegative(int64(*now), at)...)
	}
	if old != nil && (now == nil || *now < *old) {
		value := int32(0)
		if now != nil {
			value = *now
		}
		errs = append(errs, field.Invalid(at, value, "cannot be decremented"))
	}
	return errs
}
