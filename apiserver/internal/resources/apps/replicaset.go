package apps

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/workload"
)

func replicaSet(clock clock.PassiveClock) registry.Strategy[*appsv1.ReplicaSet] {
	return registry.WithStatus(registry.Strategy[*appsv1.ReplicaSet]{
		Resource: resource("replicasets", "ReplicaSet"), Singular: "replicaset", ShortNames: []string{"rs"}, Categories: []string{"all"},
		Default: func(s *appsv1.ReplicaSet) {
			pod.DefaultTemplate(&s.Spec.Template)
			workload.DefaultTo(&s.Spec.Replicas, 1)
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*appsv1.ReplicaSet]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, s *appsv1.ReplicaSet) field.ErrorList { return validateReplicaSet(&s.Spec) },
			Warnings:     func(_ context.Context, s *appsv1.ReplicaSet) []string { return workload.NameWarnings(s.Name) },
		},
		Update: registry.UpdateStrategy[*appsv1.ReplicaSet]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, s, old *appsv1.ReplicaSet) field.ErrorList {
				return append(validateReplicaSet(&s.Spec), check.Unchanged(s.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))...)
			},
		},
		Status: &registry.UpdateStrategy[*appsv1.ReplicaSet]{Validate: func(_ context.Context, s, _ *appsv1.ReplicaSet) field.ErrorList {
			return ReplicasStatus(s.Status)
		}},
		Read: registry.ReadStrategy[*appsv1.ReplicaSet]{
			Columns: cell.Describe(cell.Columns(appsv1.ReplicaSetStatus{}.SwaggerDoc(),
				"Name", "Desired:integer", "Current:integer=replicas", "Ready:integer=readyReplicas", "Age", "Containers*", "Images*",
				"Selector*",
			), map[string]string{
				"Desired":  appsv1.ReplicaSetSpec{}.SwaggerDoc()["replicas"],
				"Selector": appsv1.ReplicaSetSpec{}.SwaggerDoc()["selector"],
			}),
			Row: func(s *appsv1.ReplicaSet) []any {
				names, images := cell.Containers(s.Spec.Template.Spec.Containers)
				return []any{
					s.Name, int64(*s.Spec.Replicas), int64(s.Status.Replicas), int64(s.Status.ReadyReplicas),
					cell.Age(clock.Now(), s.CreationTimestamp), names, images, metav1.FormatLabelSelector(s.Spec.Selector),
				}
			},
		},
	})
}

func validateReplicaSet(s *appsv1.ReplicaSetSpec) field.ErrorList {
	errs := workload.NonnegativeCounts(specPath, []workload.Count{{Field: "replicas", Value: *s.Replicas},
		{Field: "minReadySeconds", Value: s.MinReadySeconds}})
	errs = append(errs, workload.Selector(s.Selector, "deployment", specPath.Child("selector"))...)
	return append(errs, workload.Template(&s.Template, s.Selector, "ReplicaSet", "invalid label selector", specPath.Child("template"))...)
}

// ReplicasStatus validates the status of replica sets, and of replication
// controllers, which have the same.
func ReplicasStatus(s appsv1.ReplicaSetStatus) field.ErrorList {
	errs := workload.NonnegativeCounts(statusPath, []workload.Count{
		{Field: "replicas", Value: s.Replicas}, {Field: "fullyLabeledReplicas", Value: s.FullyLabeledReplicas},
		{Field: "readyReplicas", Value: s.ReadyReplicas}, {Field: "availableReplicas", Value: s.AvailableReplicas},
		{Field: "terminatingReplicas", Value: ptr.Deref(s.TerminatingReplicas, 0)},
	})
	errs = append(errs, check.Nonnegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	errs = append(errs, notMore(s.FullyLabeledReplicas, s.Replicas, "fullyLabeledReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.ReadyReplicas, s.Replicas, "readyReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.AvailableReplicas, s.Replicas, "availableReplicas", "status.replicas")...)
	return append(errs, notMore(s.AvailableReplicas, s.ReadyReplicas, "availableReplicas", "readyReplicas")...)
}
