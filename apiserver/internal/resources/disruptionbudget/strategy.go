// Package disruptionbudget holds what is particular to pod disruption budgets:
// how many of a set of pods may be evicted at once. The present number is in
// the status, which a loop maintains and each eviction decrements.
package disruptionbudget

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of pod disruption budgets.
func Strategy(clock clock.PassiveClock) registry.Strategy[*policyv1.PodDisruptionBudget] {
	return registry.Strategy[*policyv1.PodDisruptionBudget]{
		Resource: core.PodDisruptionBudgets, Singular: "poddisruptionbudget", ShortNames: []string{"pdb"},
		New:           func() *policyv1.PodDisruptionBudget { return new(policyv1.PodDisruptionBudget) },
		HasGeneration: true,
		Create: registry.CreateStrategy[*policyv1.PodDisruptionBudget]{
			Prepare: func(_ context.Context, b *policyv1.PodDisruptionBudget) {
				b.Status = policyv1.PodDisruptionBudgetStatus{}
			},
			ValidateName: check.NameIsSegment, // as in upstream: anything that can be part of a path
			Validate:     func(_ context.Context, b *policyv1.PodDisruptionBudget) field.ErrorList { return validate(b) },
		},
		Update: registry.UpdateStrategy[*policyv1.PodDisruptionBudget]{
			Prepare:  func(_ context.Context, b, old *policyv1.PodDisruptionBudget) { b.Status = old.Status },
			Validate: func(_ context.Context, b, _ *policyv1.PodDisruptionBudget) field.ErrorList { return validate(b) },
		},
		Status: &registry.UpdateStrategy[*policyv1.PodDisruptionBudget]{
			Prepare:  func(_ context.Context, b, old *policyv1.PodDisruptionBudget) { b.Spec = old.Spec },
			Validate: func(_ context.Context, b, _ *policyv1.PodDisruptionBudget) field.ErrorList { return validateStatus(b) },
		},
		Read: registry.ReadStrategy[*policyv1.PodDisruptionBudget]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(),
				cell.Text("Min Available", "The minimum number of pods that must be available."),
				cell.Text("Max Unavailable", "The maximum number of pods that may be unavailable."),
				{Name: "Allowed Disruptions", Type: "integer", Description: "Calculated number of pods that may be disrupted at this time."},
				cell.AgeColumn(),
			},
			Row: func(b *policyv1.PodDisruptionBudget) []any {
				return []any{b.Name, intOrPercentText(b.Spec.MinAvailable), intOrPercentText(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed),
					cell.Age(clock.Now(), b.CreationTimestamp)}
			},
		},
	}
}

func intOrPercentText(a *intstr.IntOrString) string {
	if a == nil {
		return "N/A"
	}
	return a.String()
}

func validate(b *policyv1.PodDisruptionBudget) field.ErrorList {
	at, spec := field.NewPath("spec"), &b.Spec
	var errs field.ErrorList
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(at, check.GoFieldNames{Value: *spec}, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateIntOrPercent(spec.MinAvailable, at.Child("minAvailable"))...)
	errs = append(errs, validateIntOrPercent(spec.MaxUnavailable, at.Child("maxUnavailable"))...)
	errs = append(errs, check.LabelSelector(spec.Selector, at.Child("selector"))...)
	if p := spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.AlwaysAllow && *p != policyv1.IfHealthyBudget {
		errs = append(errs, field.NotSupported(at.Child("unhealthyPodEvictionPolicy"), *p,
			[]policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}))
	}
	return errs
}

// validateIntOrPercent checks a number of pods or a percentage of them.
func validateIntOrPercent(a *intstr.IntOrString, at *field.Path) field.ErrorList {
	switch {
	case a == nil:
		return nil
	case a.Type == intstr.Int:
		return check.Nonnegative(int64(a.IntVal), at)
	case a.Type != intstr.String:
		return field.ErrorList{field.Invalid(at, *a, "must be an integer or percentage (e.g '5%%')")}
	}
	if texts := validation.IsValidPercent(a.StrVal); len(texts) > 0 {
		return check.Messages(at, *a, texts)
	}
	if percent, err := intstr.GetScaledValueFromIntOrPercent(a, 100, false); err != nil || percent > 100 {
		return field.ErrorList{field.Invalid(at, *a, "must not be greater than 100%")}
	}
	return nil
}

func validateStatus(b *policyv1.PodDisruptionBudget) field.ErrorList {
	at, s := field.NewPath("status"), &b.Status
	errs := metav1validation.ValidateConditions(s.Conditions, at.Child("conditions").Upstream())
	for _, count := range []struct {
		name  string
		value int32
	}{
		{"disruptionsAllowed", s.DisruptionsAllowed},
		{"currentHealthy", s.CurrentHealthy},
		{"desiredHealthy", s.DesiredHealthy},
		{"expectedPods", s.ExpectedPods},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(count.value), at.Child(count.name).Upstream())...)
	}
	return errs
}
