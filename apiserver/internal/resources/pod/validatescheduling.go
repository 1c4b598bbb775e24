package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	unsatisfiable = []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}
	inclusion     = []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
)

func validateAffinity(a *corev1.Affinity, at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if n := a.NodeAffinity; n != nil {
		path := at.Child("nodeAffinity")
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			errs = append(errs, ValidateNodeSelector(n.RequiredDuringSchedulingIgnoredDuringExecution,
				path.Child("requiredDuringSchedulingIgnoredDuringExecution"))...)
		}
		for i, term := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			preferred := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
			errs = append(errs, weight(term.Weight, preferred)...)
			errs = append(errs, validateNodeTerm(&term.Preference, false, preferred.Child("preference"))...)
		}
	}
	if p := a.PodAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, at.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, at.Child("podAntiAffinity"))...)
	}
	return errs
}

func weight(w int32, at *field.Path) field.ErrorList {
	if w <= 0 || w > 100 {
		return field.ErrorList{field.Invalid(at.Child("weight"), w, "must be in the range 1-100")}
	}
	return nil
}

// ValidateNodeSelector validates a node selector.
func ValidateNodeSelector(s *corev1.NodeSelector, at *field.Path) field.ErrorList {
	terms := at.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(terms, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range s.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(&s.NodeSelectorTerms[i], true, terms.Index(i))...)
	}
	return errs
}

// validateNodeTerm validates a term; its values must be valid label values only
// if it is required: preferred ones get a warning.
func validateNodeTerm(term *corev1.NodeSelectorTerm, values bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range term.MatchExpressions {
		errs = append(errs, validateNodeRequirement(&r, values, at.Child("matchExpressions").Index(i))...)
	}
	for i, r := range term.MatchFields {
		errs = append(errs, validateNodeField(&r, at.Child("matchFields").Index(i))...)
	}
	return errs
}

func validateNodeRequirement(r *corev1.NodeSelectorRequirement, values bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Forbidden(at.Child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(at.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	errs = append(errs, metav1validation.ValidateLabelName(r.Key, at.Child("key").Upstream())...)
	for i, value := range r.Values {
		if values {
			errs = append(errs, check.Messages(at.Child("values").Index(i), value, validation.IsValidLabelValue(value))...)
		}
	}
	return errs
}

func validateNodeField(r *corev1.NodeSelectorRequirement, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(at.Child("values"),
				"must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if r.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(at.Child("key"), r.Key, "not a valid field selector key"))
	}
	for i, value := range r.Values {
		errs = append(errs, check.Messages(at.Child("values").Index(i), value, check.NameIsSubdomain(value, false))...)
	}
	return errs
}

func validatePodTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range required {
		errs = append(errs, validatePodTerm(&required[i], at.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))...)
	}
	for i := range preferred {
		path := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		errs = append(errs, weight(preferred[i].Weight, path)...)
		errs = append(errs, validatePodTerm(&preferred[i].PodAffinityTerm, path.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(term *corev1.PodAffinityTerm, at *field.Path) field.ErrorList {
	options := metav1validation.LabelSelectorValidationOptions{}
	errs := metav1validation.ValidateLabelSelector(term.LabelSelector, options, at.Child("labelSelector").Upstream())
	errs = append(errs, metav1validation.ValidateLabelSelector(term.NamespaceSelector, options, at.Child("namespaceSelector").Upstream())...)
	for _, namespace := range term.Namespaces {
		errs = append(errs, check.Messages(at.Child("namespace"), namespace, check.NameIsLabel(namespace, false))...)
	}
	errs = append(errs, validateMatchKeys(term.MatchLabelKeys, term.MismatchLabelKeys, term.LabelSelector, at)...)
	if term.TopologyKey == "" {
		errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metav1validation.ValidateLabelName(term.TopologyKey, at.Child("topologyKey").Upstream())...)
}

// validateMatchKeys validates the keys whose values a pod's selector takes from its labels. They
// have been added to the selector (mergeMatchKeys), so that a key that is there more than once was
// in the user's, too. In a template, and of a label that the pod lacks, nothing is added.
func validateMatchKeys(match, mismatch []string, selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	errs := labelNames(match, selector, at.Child("matchLabelKeys"))
	errs = append(errs, labelNames(mismatch, selector, at.Child("mismatchLabelKeys"))...)
	if len(match) == 0 {
		return errs
	}
	if selector != nil {
		seen, index := sets.KeySet(selector.MatchLabels), map[string]int{}
		for i, key := range match {
			index[key] = i
		}
		for _, r := range selector.MatchExpressions {
			if i, ok := index[r.Key]; ok && seen.Has(r.Key) {
				errs = append(errs, field.Invalid(at.Index(i), r.Key, "exists in both matchLabelKeys and labelSelector")) // upstream's path
			}
			seen.Insert(r.Key)
		}
	}
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			errs = append(errs, field.Invalid(at.Child("matchLabelKeys").Index(i), key, "exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return errs
}

// labelNames checks that the keys of labels are valid, and that there is a selector to add them to.
func labelNames(keys []string, selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	if selector == nil {
		return field.ErrorList{field.Forbidden(at, "must not be specified when labelSelector is not set")}
	}
	var errs field.ErrorList
	for i, key := range keys {
		errs = append(errs, metav1validation.ValidateLabelName(key, at.Index(i).Upstream())...)
	}
	return errs
}

// spread is what must be unique among a pod's constraints.
type spread struct {
	key    string
	action corev1.UnsatisfiableConstraintAction
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	later := map[spread]int{}
	for _, c := range constraints {
		later[spread{c.TopologyKey, c.WhenUnsatisfiable}]++
	}
	for i, c := range constraints {
		path := at.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(path.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
		}
		errs = append(errs, check.Supported(c.WhenUnsatisfiable, path.Child("whenUnsatisfiable"), unsatisfiable...)...)
		id := spread{c.TopologyKey, c.WhenUnsatisfiable}
		if later[id]--; later[id] > 0 {
			errs = append(errs, field.Duplicate(path.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%s, %s}", id.key, id.action)))
		}
		if c.MinDomains != nil {
			if *c.MinDomains <= 0 {
				errs = append(errs, field.Invalid(path.Child("minDomains"), *c.MinDomains, "must be greater than zero"))
			}
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				errs = append(errs, field.Invalid(path.Child("minDomains"), *c.MinDomains,
					fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, c.WhenUnsatisfiable)))
			}
		}
		if c.NodeAffinityPolicy != nil {
			errs = append(errs, check.Supported(*c.NodeAffinityPolicy, path.Child("nodeAffinityPolicy"), inclusion...)...)
		}
		if c.NodeTaintsPolicy != nil {
			errs = append(errs, check.Supported(*c.NodeTaintsPolicy, path.Child("nodeTaintsPolicy"), inclusion...)...)
		}
		errs = append(errs, validateMatchKeys(c.MatchLabelKeys, nil, c.LabelSelector, path)...)
		errs = append(errs, check.LabelSelector(c.LabelSelector, path.Child("labelSelector"))...)
	}
	return errs
}
