package apps

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/claim"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/volume"
	"kctl/apiserver/internal/resources/workload"
)

func statefulSet(clock clock.PassiveClock) registry.Strategy[*appsv1.StatefulSet] {
	return registry.WithStatus(registry.Strategy[*appsv1.StatefulSet]{
		Resource: resource("statefulsets", "StatefulSet"), Singular: "statefulset", ShortNames: []string{"sts"}, Categories: []string{"all"},
		Default:       defaultStatefulSet,
		HasGeneration: true,
		Create: registry.CreateStrategy[*appsv1.StatefulSet]{
			ValidateName: check.NameIsLabel,
			Validate: func(_ context.Context, s *appsv1.StatefulSet) field.ErrorList {
				errs := append(validateStatefulSet(&s.Spec), validateClaims(&s.Spec)...)
				if s.Spec.ServiceName != "" {
					errs = append(errs, check.Label(s.Spec.ServiceName, specPath.Child("serviceName"))...)
				}
				return errs
			},
			Warnings: func(_ context.Context, s *appsv1.StatefulSet) []string {
				return statefulSetWarnings(&s.Spec, "spec.volumeClaimTemplates[%d]")
			},
		},
		Update: registry.UpdateStrategy[*appsv1.StatefulSet]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, s, old *appsv1.StatefulSet) field.ErrorList {
				return append(validateStatefulSet(&s.Spec), sameStatefulSet(&s.Spec, &old.Spec)...)
			},
			Warnings: func(_ context.Context, s, _ *appsv1.StatefulSet) []string {
				return statefulSetWarnings(&s.Spec, "spec.volumeClaimTemplates[%d].Spec")
			},
		},
		Status: &registry.UpdateStrategy[*appsv1.StatefulSet]{
			Validate: func(_ context.Context, s, old *appsv1.StatefulSet) field.ErrorList {
				return validateStatefulSetStatus(&s.Status, &old.Status)
			},
		},
		Read: registry.ReadStrategy[*appsv1.StatefulSet]{
			Columns: cell.Describe(cell.Columns(appsv1.StatefulSetStatus{}.SwaggerDoc(),
				"Name", "Ready=readyReplicas", "Age", "Containers*", "Images*",
			), map[string]string{
				"Ready": "Number of the pod with ready state",
			}),
			Row: func(s *appsv1.StatefulSet) []any {
				names, images := cell.Containers(s.Spec.Template.Spec.Containers)
				return []any{
					s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, *s.Spec.Replicas), cell.Age(clock.Now(), s.CreationTimestamp), names, images,
				}
			},
		},
	})
}

func defaultStatefulSet(set *appsv1.StatefulSet) {
	s := &set.Spec
	pod.DefaultTemplate(&s.Template)
	workload.DefaultTo(&s.Replicas, 1)
	workload.DefaultTo(&s.RevisionHistoryLimit, 10)
	if s.PodManagementPolicy == "" {
		s.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if s.UpdateStrategy.RollingUpdate == nil {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.UpdateStrategy.RollingUpdate != nil {
		workload.DefaultTo(&s.UpdateStrategy.RollingUpdate.Partition, 0)
		workload.DefaultTo(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	workload.DefaultTo(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	policy := s.PersistentVolumeClaimRetentionPolicy
	for _, p := range []*appsv1.PersistentVolumeClaimRetentionPolicyType{&policy.WhenDeleted, &policy.WhenScaled} {
		if *p == "" {
			*p = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
		}
	}
	for i := range s.VolumeClaimTemplates {
		volume.DefaultClaim(&s.VolumeClaimTemplates[i])
		s.VolumeClaimTemplates[i].Kind, s.VolumeClaimTemplates[i].APIVersion = "PersistentVolumeClaim", "v1"
	}
}

func validateStatefulSet(s *appsv1.StatefulSetSpec) field.ErrorList {
	var errs field.ErrorList
	if s.PodManagementPolicy != appsv1.OrderedReadyPodManagement && s.PodManagementPolicy != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(specPath.Child("podManagementPolicy"), s.PodManagementPolicy,
			fmt.Sprintf("must be '%s' or '%s'", appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)))
	}
	errs = append(errs, validateStatefulSetStrategy(&s.UpdateStrategy, specPath.Child("updateStrategy"))...)
	errs = append(errs, validateRetention(s.PersistentVolumeClaimRetentionPolicy, specPath.Child("persistentVolumeClaimRetentionPolicy"))...)
	errs = append(errs, workload.NonnegativeCounts(specPath, []workload.Count{{Field: "replicas", Value: *s.Replicas},
		{Field: "minReadySeconds", Value: s.MinReadySeconds}})...)
	if s.Ordinals != nil {
		errs = append(errs, check.Nonnegative(int64(s.Ordinals.Start), specPath.Child("ordinals", "start"))...)
	}
	errs = append(errs, workload.Selector(s.Selector, "statefulset", specPath.Child("selector"))...)
	return append(errs, workload.Template(withClaimVolumes(s), s.Selector, "StatefulSet", "", specPath.Child("template"))...)
}

// validateClaims validates the templates of a new set's claims. They never change: of a set
// that exists they are what an older server let through, as upstream's did for years.
func validateClaims(s *appsv1.StatefulSetSpec) field.ErrorList {
	var errs field.ErrorList
	for i := range s.VolumeClaimTemplates {
		errs = append(errs, claim.ValidateSpec(&s.VolumeClaimTemplates[i].Spec, specPath.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
	}
	return errs
}

// withClaimVolumes is the template with the volumes that the pods will have: those of
// the claims first, then the template's own unless a claim has the name.
func withClaimVolumes(s *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	t := s.Template.DeepCopy()
	var volumes []corev1.Volume
	named := map[string]bool{}
	for i := range s.VolumeClaimTemplates {
		name := s.VolumeClaimTemplates[i].Name
		if named[name] {
			continue
		}
		named[name] = true
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	for _, own := range t.Spec.Volumes {
		if !named[own.Name] {
			volumes = append(volumes, own)
		}
	}
	t.Spec.Volumes = volumes
	t.Spec.Hostname, t.Spec.Subdomain = "", "" // their pods have names of their own
	return t
}

// statefulSetWarnings spells the path of claim templates as upstream does,
// which differs between create and update.
func statefulSetWarnings(s *appsv1.StatefulSetSpec, template string) []string {
	var out []string
	if ptr.Deref(s.RevisionHistoryLimit, 0) < 0 {
		out = append(out, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	for i := range s.VolumeClaimTemplates {
		out = append(out, check.ClaimWarnings(&s.VolumeClaimTemplates[i].Spec, fmt.Sprintf(template, i))...)
	}
	return out
}

func validateStatefulSetStrategy(s *appsv1.StatefulSetUpdateStrategy, at *field.Path) field.ErrorList {
	switch s.Type {
	case "":
		return field.ErrorList{field.Required(at, "")}
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Invalid(at.Child("rollingUpdate"), check.GoFieldNames{Value: s.RollingUpdate},
				"only allowed for updateStrategy 'RollingUpdate'")}
		}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if s.RollingUpdate == nil {
			return nil
		}
		rolling := at.Child("rollingUpdate")
		errs := check.Nonnegative(int64(*s.RollingUpdate.Partition), rolling.Child("partition"))
		if most := s.RollingUpdate.MaxUnavailable; most != nil {
			errs = append(errs, workload.IntOrPercent(*most, rolling.Child("maxUnavailable"))...)
			if workload.IsZero(most) {
				errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), *most, "cannot be 0"))
			}
			errs = append(errs, workload.AtMost100Percent(*most, rolling.Child("maxUnavailable"))...)
		}
		return errs
	default:
		return field.ErrorList{field.Invalid(at, check.GoFieldNames{Value: *s}, "must be 'RollingUpdate' or 'OnDelete'")}
	}
	return nil
}

func validateRetention(p *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name  string
		value appsv1.PersistentVolumeClaimRetentionPolicyType
	}{{"whenDeleted", p.WhenDeleted}, {"whenScaled", p.WhenScaled}} {
		if f.value != appsv1.RetainPersistentVolumeClaimRetentionPolicyType && f.value != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			errs = append(errs, field.NotSupported(at.Child(f.name), f.value,
				[]appsv1.PersistentVolumeClaimRetentionPolicyType{appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
					appsv1.DeletePersistentVolumeClaimRetentionPolicyType}))
		}
	}
	return errs
}

// sameStatefulSet checks that an update keeps what existing pods and claims
// were made from.
func sameStatefulSet(now, old *appsv1.StatefulSetSpec) field.ErrorList {
	errs := check.Unchanged(now.Selector, old.Selector, specPath.Child("selector"))
	if !equality.Semantic.DeepEqual(now.VolumeClaimTemplates, old.VolumeClaimTemplates) {
		given := check.GoFieldNames{Value: now.VolumeClaimTemplates}
		errs = append(errs, field.Invalid(specPath.Child("volumeClaimTemplates"), given, check.Immutable))
	}
	errs = append(errs, check.Unchanged(now.ServiceName, old.ServiceName, specPath.Child("serviceName"))...)
	return append(errs, check.Unchanged(now.PodManagementPolicy, old.PodManagementPolicy, specPath.Child("podManagementPolicy"))...)
}

func validateStatefulSetStatus(s, old *appsv1.StatefulSetStatus) field.ErrorList {
	errs := workload.NonnegativeCounts(statusPath, []workload.Count{
		{Field: "replicas", Value: s.Replicas}, {Field: "readyReplicas", Value: s.ReadyReplicas},
		{Field: "currentReplicas", Value: s.CurrentReplicas},
		{Field: "updatedReplicas", Value: s.UpdatedReplicas}, {Field: "availableReplicas", Value: s.AvailableReplicas},
	})
	errs = append(errs, check.Nonnegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	errs = append(errs, notMore(s.ReadyReplicas, s.Replicas, "readyReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.CurrentReplicas, s.Replicas, "currentReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.UpdatedReplicas, s.Replicas, "updatedReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.AvailableReplicas, s.Replicas, "availableReplicas", "status.replicas")...)
	errs = append(errs, notMore(s.AvailableReplicas, s.ReadyReplicas, "availableReplicas", "status.readyReplicas")...)
	return append(errs, validateCollisionCount(s.CollisionCount, old.CollisionCount)...)
}
