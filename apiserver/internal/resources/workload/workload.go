package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
)

// Selector checks that a selector is set, valid and not empty. owner is what
// the message about an empty one calls the object.
func Selector(selector *metav1.LabelSelector, owner string, at *field.Path) field.ErrorList {
	if selector == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := check.LabelSelector(selector, at)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(at, selector, "empty selector is invalid for "+owner))
	}
	return errs
}

// Template checks a template whose pods are to be kept running, and that the
// selector matches its labels. unreadable is the message for a selector that
// can't be parsed.
func Template(t *corev1.PodTemplateSpec, selector *metav1.LabelSelector, owner, unreadable string, at *field.Path) field.ErrorList {
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), selector, unreadable)}
	}
	return TemplateSelectedBy(t, chosen, owner, at)
}

// NameWarnings warns about a name that is valid for pods but not for their host
// names.
func NameWarnings(name string) []string {
	texts := validation.IsDNS1123Label(name)
	if len(texts) == 0 || name == "" {
		return nil
	}
	return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, "+
		"which can result in surprising behavior; a DNS label is recommended: %v", texts)}
}

// TemplateSelectedBy is Template for kinds whose selector is not a LabelSelector.
func TemplateSelectedBy(t *corev1.PodTemplateSpec, chosen labels.Selector, owner string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !chosen.Empty() && !chosen.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(at.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, pod.ValidateTemplate(t, at)...)
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("spec", "restartPolicy"), t.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+owner+" is not Supported"))
	}
	return errs
}

// IntOrPercent checks a number of pods, or a percentage of them.
func IntOrPercent(value intstr.IntOrString, at *field.Path) field.ErrorList {
	switch value.Type {
	case intstr.String:
		return check.Messages(at, value, validation.IsValidPercent(value.StrVal))
	case intstr.Int:
		return check.Nonnegative(int64(value.IntVal), at)
	}
	return field.ErrorList{field.Invalid(at, value, "must be an integer or percentage (e.g '5%%')")}
}

// AtMost100Percent checks that a percentage is at most 100.
func AtMost100Percent(value intstr.IntOrString, at *field.Path) field.ErrorList {
	if percent(value) > 100 {
		return field.ErrorList{field.Invalid(at, value, "must not be greater than 100%")}
	}
	return nil
}

// IsZero reports whether a number or a percentage is zero or unset.
func IsZero(value *intstr.IntOrString) bool {
	return value == nil || value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && percent(*value) == 0
}

// percent is the percentage, or 0 if value is not one.
func percent(value intstr.IntOrString) int {
	if value.Type != intstr.String || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return 0
	}
	var n int
	if _, err := fmt.Sscanf(value.StrVal, "%d%%", &n); err != nil {
		return 0
	}
	return n
}

// NonnegativeCounts checks that no number is negative. Errors name its field.
func NonnegativeCounts(at *field.Path, counts []Count) field.ErrorList {
	var errs field.ErrorList
	for _, c := range counts {
		errs = append(errs, check.Nonnegative(int64(c.Value), at.Child(c.Field))...)
	}
	return errs
}

// Count is a number and the name of its field.
type Count struct {
	Field string
	Value int32
}

// DefaultTo sets *to if it is nil.
func DefaultTo[T any](to **T, value T) {
	if *to == nil {
		*to = &value
	}
}
