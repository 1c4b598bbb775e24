package apps

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/apiserver/internal/resources/workload"
)

func daemonSet(clock clock.PassiveClock) registry.Strategy[*appsv1.DaemonSet] {
	return registry.WithStatus(registry.Strategy[*appsv1.DaemonSet]{
		Resource: resource("daemonsets", "DaemonSet"), Singular: "daemonset", ShortNames: []string{"ds"}, Categories: []string{"all"},
		Default:       defaultDaemonSet,
		HasGeneration: true,
		Create: registry.CreateStrategy[*appsv1.DaemonSet]{
			Prepare:      func(_ context.Context, d *appsv1.DaemonSet) { setTemplateGeneration(d, max(templateGeneration(d), 1)) },
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, d *appsv1.DaemonSet) field.ErrorList { return validateDaemonSet(&d.Spec) },
		},
		Update: registry.UpdateStrategy[*appsv1.DaemonSet]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, d, old *appsv1.DaemonSet) { countTemplates(d, old) },
			Validate: func(_ context.Context, d, old *appsv1.DaemonSet) field.ErrorList {
				return append(validateDaemonSet(&d.Spec), check.Unchanged(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))...)
			},
		},
		Status: &registry.UpdateStrategy[*appsv1.DaemonSet]{
			Prepare: func(_ context.Context, d, old *appsv1.DaemonSet) { setTemplateGeneration(d, templateGeneration(old)) },
			Validate: func(_ context.Context, d, old *appsv1.DaemonSet) field.ErrorList {
				return validateDaemonSetStatus(&d.Status, &old.Status)
			},
		},
		Read: registry.ReadStrategy[*appsv1.DaemonSet]{
			Unreadable: func(d *appsv1.DaemonSet) error {
				if n, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; ok { // a field, once
					_, err := strconv.ParseInt(n, 10, 64)
					return err
				}
				return nil
			},
			Columns: cell.Describe(cell.Columns(appsv1.DaemonSetStatus{}.SwaggerDoc(),
				"Name", "Desired:integer=desiredNumberScheduled", "Current:integer=currentNumberScheduled", "Ready:integer=numberReady",
				"Up-to-date:integer=updatedNumberScheduled", "Available:integer=numberAvailable", "Node Selector", "Age", "Containers*",
				"Images*", "Selector*",
			), map[string]string{
				"Node Selector": corev1.PodSpec{}.SwaggerDoc()["nodeSelector"],
				"Selector":      appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"],
			}),
			Row: func(d *appsv1.DaemonSet) []any {
				names, images := cell.Containers(d.Spec.Template.Spec.Containers)
				s := &d.Status
				return []any{
					d.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady), int64(s.UpdatedNumberScheduled),
					int64(s.NumberAvailable), labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), cell.Age(clock.Now(), d.CreationTimestamp),
					names, images, metav1.FormatLabelSelector(d.Spec.Selector),
				}
			},
		},
	})
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	if _, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		setTemplateGeneration(d, 0) // a default is owned by the writer that omits the field
	}
	s := &d.Spec
	pod.DefaultTemplate(&s.Template)
	workload.DefaultTo(&s.RevisionHistoryLimit, 10)
	if s.UpdateStrategy.Type == "" {
		s.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		workload.DefaultTo(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		workload.DefaultTo(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		workload.DefaultTo(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	} else if r := s.UpdateStrategy.RollingUpdate; r != nil {
		workload.DefaultTo(&r.MaxUnavailable, intstr.FromInt32(0))
		workload.DefaultTo(&r.MaxSurge, intstr.FromInt32(0))
	}
}

// templateGeneration counts the changes of the template. Since apps/v1 it is
// kept in an annotation, which users can set only at creation.
func templateGeneration(d *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// countTemplates sets the template generation of an update, whatever its writer has
// set it to.
func countTemplates(d, old *appsv1.DaemonSet) {
	generation := templateGeneration(old)
	if !equality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
		generation++
	}
	setTemplateGeneration(d, generation)
}

func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
}

func validateDaemonSet(s *appsv1.DaemonSetSpec) field.ErrorList {
	at := specPath.Child("selector")
	var errs field.ErrorList
	chosen, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err != nil {
		chosen = labels.Everything() // its errors are reported below
	}
	if s.Selector != nil {
		errs = workload.Selector(s.Selector, "daemonset", at)
	}
	errs = append(errs, workload.TemplateSelectedBy(&s.Template, chosen, "DaemonSet", specPath.Child("template"))...)
	errs = append(errs, workload.NonnegativeCounts(specPath, []workload.Count{{Field: "minReadySeconds", Value: s.MinReadySeconds}})...)
	errs = append(errs, validateDaemonSetStrategy(&s.UpdateStrategy, specPath.Child("updateStrategy"))...)
	return append(errs, check.Nonnegative(int64(*s.RevisionHistoryLimit), specPath.Child("revisionHistoryLimit"))...)
}

func validateDaemonSetStrategy(s *appsv1.DaemonSetUpdateStrategy, at *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
	case appsv1.RollingUpdateDaemonSetStrategyType:
		r, rolling := s.RollingUpdate, at.Child("rollingUpdate")
		errs := workload.IntOrPercent(*r.MaxUnavailable, rolling.Child("maxUnavailable"))
		errs = append(errs, workload.IntOrPercent(*r.MaxSurge, rolling.Child("maxSurge"))...)
		errs = append(errs, workload.AtMost100Percent(*r.MaxUnavailable, rolling.Child("maxUnavailable"))...)
		errs = append(errs, workload.AtMost100Percent(*r.MaxSurge, rolling.Child("maxSurge"))...)
		switch surge, unavailable := !workload.IsZero(r.MaxSurge), !workload.IsZero(r.MaxUnavailable); {
		case surge && unavailable:
			errs = append(errs, field.Invalid(rolling.Child("maxSurge"), r.MaxSurge, "may not be set when maxUnavailable is non-zero"))
		case !surge && !unavailable:
			errs = append(errs, field.Required(rolling.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
		}
		return errs
	default:
		return field.ErrorList{field.NotSupported(at, check.GoFieldNames{Value: *s},
			[]appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType})}
	}
	return nil
}

func validateDaemonSetStatus(s, old *appsv1.DaemonSetStatus) field.ErrorList {
	errs := workload.NonnegativeCounts(statusPath, []workload.Count{
		{Field: "currentNumberScheduled", Value: s.CurrentNumberScheduled}, {Field: "numberMisscheduled", Value: s.NumberMisscheduled},
		{Field: "desiredNumberScheduled", Value: s.DesiredNumberScheduled}, {Field: "numberReady", Value: s.NumberReady},
	})
	errs = append(errs, check.Nonnegative(s.ObservedGeneration, statusPath.Child("observedGeneration"))...)
	errs = append(errs, workload.NonnegativeCounts(statusPath, []workload.Count{
		{Field: "updatedNumberScheduled", Value: s.UpdatedNumberScheduled}, {Field: "numberAvailable", Value: s.NumberAvailable},
		{Field: "numberUnavailable", Value: s.NumberUnavailable},
	})...)
	return append(errs, validateCollisionCount(s.CollisionCount, old.CollisionCount)...)
}
