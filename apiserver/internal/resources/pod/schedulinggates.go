package pod

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

// allowGatedChanges allows a gated pod's scheduling constraints to be narrowed, as no
// scheduler has seen it. It resets them in rest to the old ones, and returns an error,
// in upstream's words, if they are wider.
func allowGatedChanges(rest, old *core.PodSpec, at *field.Path) (errs field.ErrorList) {
	for _, key := range slices.Sorted(maps.Keys(old.NodeSelector)) {
		if value, ok := rest.NodeSelector[key]; !ok || value != old.NodeSelector[key] {
			errs = append(errs, field.Invalid(at.Child("nodeSelector"), rest.NodeSelector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	rest.NodeSelector = old.NodeSelector
	now, was := nodeAffinity(rest), nodeAffinity(old)
	if equality.Semantic.DeepEqual(now, was) {
		return errs
	}
	errs = append(errs, onlyNarrower(now, was, at.Child("affinity", "nodeAffinity"))...)
	switch {
	case rest.Affinity == nil:
		rest.Affinity = &corev1.Affinity{NodeAffinity: was}
	case old.Affinity == nil && rest.Affinity.PodAffinity == nil && rest.Affinity.PodAntiAffinity == nil:
		rest.Affinity = nil
	default:
		rest.Affinity.NodeAffinity = was
	}
	return errs
}

func nodeAffinity(s *core.PodSpec) *corev1.NodeAffinity {
	if s.Affinity == nil {
		return nil
	}
	return s.Affinity.NodeAffinity
}

// onlyNarrower checks required terms: each may get more requirements. There may be no
// new ones, as a node has to meet only one. Preferred terms don't exclude nodes, so
// they may change.
func onlyNarrower(now, was *corev1.NodeAffinity, at *field.Path) (errs field.ErrorList) {
	terms := func(a *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
		if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			return nil
		}
		return a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	after, before := terms(now), terms(was)
	at = at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if len(before) > 0 && len(after) != len(before) {
		return field.ErrorList{field.Invalid(at, after, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	for i, term := range before {
		none := len(term.MatchExpressions)+len(term.MatchFields) == 0 // which no node meets
		asks := len(after[i].MatchExpressions)+len(after[i].MatchFields) > 0
		if none && asks || !isPrefixOf(after[i].MatchExpressions, term.MatchExpressions) || !isPrefixOf(after[i].MatchFields, term.MatchFields) {
			errs = append(errs, field.Invalid(at.Index(i), after[i], "only additions are allowed (no mutations or deletions)"))
		}
	}
	return errs
}

func isPrefixOf(now, was []corev1.NodeSelectorRequirement) bool {
	return len(now) >= len(was) && equality.Semantic.DeepEqual(now[:len(was)], was) || len(was) == 0
}
