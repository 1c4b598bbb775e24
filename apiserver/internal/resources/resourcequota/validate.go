package resourcequota

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	scopes = sets.New(
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass,
	)
	// exclusiveScopes are scopes that exclude each other.
	exclusiveScopes = [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	}
	podResources = sets.New(
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
	)
	claimResources = sets.New(corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage)
)

func validate(_ context.Context, q *corev1.ResourceQuota) field.ErrorList {
	at := field.NewPath("spec")
	errs := validateQuantities(q.Spec.Hard, at.Child("hard"))
	errs = append(errs, validateScopes(&q.Spec, at.Child("scopes"))...)
	return append(errs, validateSelector(&q.Spec, at.Child("scopeSelector", "matchExpressions"))...)
}

func validateUpdate(ctx context.Context, q, old *corev1.ResourceQuota) field.ErrorList {
	errs := validate(ctx, q)
	if now, was := sets.New(q.Spec.Scopes...), sets.New(old.Spec.Scopes...); !now.Equal(was) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "scopes"), q.Spec.Scopes, check.Immutable))
	}
	return errs
}

func validateStatus(_ context.Context, q, _ *corev1.ResourceQuota) field.ErrorList {
	at := field.NewPath("status")
	return append(validateQuantities(q.Status.Hard, at.Child("hard")), validateQuantities(q.Status.Used, at.Child("used"))...)
}

func validateQuantities(list corev1.ResourceList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		path := at.Key(string(name))
		errs = append(errs, check.QuotaResource(name, path)...)
		errs = append(errs, check.Quantity(name, list[name], path)...)
	}
	return errs
}

// appliesTo reports whether a scope applies to all the resources.
func appliesTo(scope corev1.ResourceQuotaScope, hard corev1.ResourceList) bool {
	allowed := podResources
	switch scope {
	case corev1.ResourceQuotaScopeBestEffort:
		allowed = sets.New(corev1.ResourcePods)
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
		allowed = claimResources
	}
	for name := range hard {
		if check.IsStandardForQuota(name) && !allowed.Has(name) {
			return false
		}
	}
	return true
}

func hasExclusiveScopes(have sets.Set[corev1.ResourceQuotaScope]) bool {
	return slices.ContainsFunc(exclusiveScopes, func(pair [2]corev1.ResourceQuotaScope) bool { return have.HasAll(pair[:]...) })
}

func validateScopes(spec *corev1.ResourceQuotaSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, scope := range spec.Scopes {
		switch {
		case !scopes.Has(scope):
			errs = append(errs, field.Invalid(at, spec.Scopes, "unsupported scope"))
		case !appliesTo(scope, spec.Hard):
			errs = append(errs, field.Invalid(at, spec.Scopes, "unsupported scope applied to resource"))
		}
	}
	if hasExclusiveScopes(sets.New(spec.Scopes...)) {
		errs = append(errs, field.Invalid(at, spec.Scopes, "conflicting scopes"))
	}
	return errs
}

func validateSelector(spec *corev1.ResourceQuotaSpec, at *field.Path) field.ErrorList {
	if spec.ScopeSelector == nil {
		return nil
	}
	var errs field.ErrorList
	have := sets.New[corev1.ResourceQuotaScope]()
	for _, r := range spec.ScopeSelector.MatchExpressions {
		have.Insert(r.ScopeName)
		switch {
		case !scopes.Has(r.ScopeName):
			errs = append(errs, field.Invalid(at.Child("scopeName"), r.ScopeName, "unsupported scope"))
		case !appliesTo(r.ScopeName, spec.Hard):
			errs = append(errs, field.Invalid(at, spec.ScopeSelector, "unsupported scope applied to resource"))
		}
		switch r.ScopeName {
		case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass:
		default:
			if scopes.Has(r.ScopeName) && r.Operator != corev1.ScopeSelectorOpExists {
				errs = append(errs, field.Invalid(at.Child("operator"), r.Operator,
					"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "+
						"ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
			}
		}
		errs = append(errs, validateRequirement(r, at)...)
	}
	if hasExclusiveScopes(have) {
		errs = append(errs, field.Invalid(at, spec.ScopeSelector, "conflicting scopes"))
	}
	return errs
}

func validateRequirement(r corev1.ScopedResourceSelectorRequirement, at *field.Path) field.ErrorList {
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(at.Child("values"),
				"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")}
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return field.ErrorList{field.Invalid(at.Child("values"), r.Values,
				"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")}
		}
	default:
		return field.ErrorList{field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator")}
	}
	return nil
}
