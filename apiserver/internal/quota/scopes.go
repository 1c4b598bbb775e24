package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	pod "kctl/apiserver/internal/resources/pod"
	"kctl/proto/core"
)

// scopesMatch reports whether obj counts against q, according to q's scopes.
func scopesMatch(q *corev1.ResourceQuota, obj core.Object) bool {
	return !slices.ContainsFunc(scopeTerms(q), func(term corev1.ScopedResourceSelectorRequirement) bool { return !termMatches(term, obj) })
}

// scopeTerms are q's scopes and the terms of its selector. All of them must
// match.
func scopeTerms(q *corev1.ResourceQuota) []corev1.ScopedResourceSelectorRequirement {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, scope := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

func termMatches(term corev1.ScopedResourceSelectorRequirement, obj core.Object) bool {
	switch o := obj.(type) {
	case *core.Pod:
		return podTermMatches(term, o)
	case *corev1.PersistentVolumeClaim:
		if term.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
			return false
		}
		return namesMatch(term, volumeAttributesClasses(o))
	}
	return false // no scope includes anything else
}

func podTermMatches(term corev1.ScopedResourceSelectorRequirement, p *core.Pod) bool {
	limited := ptr.Deref(p.Spec.ActiveDeadlineSeconds, -1) >= 0
	switch term.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return limited
	case corev1.ResourceQuotaScopeNotTerminating:
		return !limited
	case corev1.ResourceQuotaScopeBestEffort:
		return pod.BestEffort(&p.Spec)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !pod.BestEffort(&p.Spec)
	case corev1.ResourceQuotaScopePriorityClass:
		var names []string
		if p.Spec.PriorityClassName != "" {
			names = append(names, p.Spec.PriorityClassName)
		}
		return namesMatch(term, names)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return hasCrossNamespaceTerms(p.Spec.Affinity)
	}
	return false
}

// namesMatch reports whether one of names, if any, matches the term.
func namesMatch(term corev1.ScopedResourceSelectorRequirement, names []string) bool {
	listed := slices.ContainsFunc(names, func(name string) bool { return slices.Contains(term.Values, name) })
	switch term.Operator {
	case corev1.ScopeSelectorOpIn:
		return listed
	case corev1.ScopeSelectorOpNotIn:
		return !listed
	case corev1.ScopeSelectorOpExists:
		return len(names) > 0
	case corev1.ScopeSelectorOpDoesNotExist:
		return len(names) == 0
	}
	return false
}

// volumeAttributesClasses are the classes that a claim has, requests, or is being given.
func volumeAttributesClasses(claim *corev1.PersistentVolumeClaim) []string {
	var names []string
	add := func(name *string) {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	add(claim.Spec.VolumeAttributesClassName)
	add(claim.Status.CurrentVolumeAttributesClassName)
	if change := claim.Status.ModifyVolumeStatus; change != nil {
		add(&change.TargetVolumeAttributesClassName)
	}
	return names
}

// hasCrossNamespaceTerms reports whether the affinity concerns pods of other namespaces.
func hasCrossNamespaceTerms(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
