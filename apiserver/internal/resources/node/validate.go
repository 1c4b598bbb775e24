package node

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/net"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

func validate(n *core.Node, before []string) field.ErrorList {
	errs := validateTaints(n.Spec.Taints, field.NewPath("metadata", "taints"))
	errs = append(errs, validateStatusQuantities(n)...)
	return append(errs, validatePodCIDRs(&n.Spec, before)...)
}

func validateStatusQuantities(n *core.Node) field.ErrorList {
	errs := validateQuantities(n.Status.Capacity, field.NewPath("status", "capacity"))
	return append(errs, validateQuantities(n.Status.Allocatable, field.NewPath("status", "allocatable"))...)
}

// validateCreate validates a whole new node; for existing ones, validateStatus
// validates the status.
func validateCreate(n *core.Node) field.ErrorList {
	return append(validate(n, nil), validateDeclared(&n.Status, &corev1.NodeStatus{})...)
}

// validateDeclared validates a node's swap and declared features. Our kubelets
// formerly reported no swap as an amount of 0; stored ones may stay.
func validateDeclared(status, old *corev1.NodeStatus) field.ErrorList {
	var errs field.ErrorList
	swap := status.NodeInfo.Swap
	if swap != nil && swap.Capacity != nil && *swap.Capacity <= 0 && !equality.Semantic.DeepEqual(swap, old.NodeInfo.Swap) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "nodeSwapStatus", "capacity"), *swap.Capacity, "must be greater than zero"))
	}
	for i, name := range status.DeclaredFeatures {
		at := field.NewPath("status", "declaredFeatures").Index(i)
		if i > 0 && name == status.DeclaredFeatures[i-1] {
			errs = append(errs, field.Duplicate(at, name))
		} else if i > 0 && name < status.DeclaredFeatures[i-1] {
			errs = append(errs, field.Invalid(at, name, "list must be sorted alphabetically"))
		}
		if !featureName.MatchString(name) {
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, "+
				"with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only "+
				"alphanumeric characters and slashes", name)))
		}
	}
	return errs
}

var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*$`)

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, amount := range list {
		errs = append(errs, check.Quantity(name, amount, path.Child(string(name)))...)
	}
	return errs
}

// validatePodCIDRs validates new ranges; those the node already has are accepted.
func validatePodCIDRs(spec *corev1.NodeSpec, before []string) field.ErrorList {
	if len(spec.PodCIDRs) == 0 {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "podCIDRs")
	for i, cidr := range spec.PodCIDRs {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i).Upstream(), cidr, true, before)...)
	}
	if len(spec.PodCIDRs) == 1 {
		return errs
	}
	dual, err := net.IsDualStackCIDRStrings(spec.PodCIDRs)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%w", err)))
	}
	if !dual || len(spec.PodCIDRs) > 2 {
		errs = append(errs, field.Invalid(path, spec.PodCIDRs, "may specify no more than one CIDR for each IP family"))
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type identity struct {
		effect corev1.TaintEffect
		key    string
	}
	seen := sets.New[identity]()
	for i, t := range taints {
		at := path.Index(i)
		errs = append(errs, check.QualifiedName(t.Key, at.Child("key"))...)
		if texts := validation.IsValidLabelValue(t.Value); len(texts) > 0 {
			errs = append(errs, field.Invalid(at.Child("value"), t.Value, strings.Join(texts, ";")))
		}
		if t.Effect == "" {
			errs = append(errs, field.Required(at.Child("effect"), ""))
		} else if !check.TaintEffects.Has(t.Effect) {
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect,
				[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
		}
		id := identity{t.Effect, t.Key}
		if seen.Has(id) {
			duplicate := field.Duplicate(at, t)
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		}
		seen.Insert(id)
	}
	return errs
}

// validateUpdate allows changes of labels, taints and unschedulable, and
// setting empty fields once.
func validateUpdate(_ context.Context, n, old *core.Node) field.ErrorList {
	errs := validate(n, old.Spec.PodCIDRs)
	spec := field.NewPath("spec")
	if len(old.Spec.PodCIDRs) > 0 && !equality.Semantic.DeepEqual(n.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(spec.Child("podCIDRs"), `node updates may not change podCIDR except from "" to valid`))
	}
	if old.Spec.ProviderID != "" && n.Spec.ProviderID == "" {
		errs = append(errs, field.Invalid(spec.Child("providerID"), nil, "field cannot be cleared once set"))
	} else if old.Spec.ProviderID != "" && n.Spec.ProviderID != old.Spec.ProviderID {
		errs = append(errs, field.Invalid(spec.Child("providerID"), nil, "field cannot be modified once set"))
	}
	if n.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(spec.Child("externalID"), "may not be updated"))
	}
	return errs
}

func validateStatus(_ context.Context, n, old *core.Node) field.ErrorList {
	errs := append(validateStatusQuantities(n), validateDeclared(&n.Status, &old.Status)...)
	seen := sets.New[corev1.NodeAddress]()
	for i, address := range n.Status.Addresses {
		if seen.Has(address) {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), address))
		}
		seen.Insert(address)
	}
	return errs
}
