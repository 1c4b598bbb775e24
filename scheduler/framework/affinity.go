package framework

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
)

// PodAffinity is what a pod says about other pods, parsed.
type PodAffinity struct {
	Required, RequiredAnti   []AffinityTerm
	Preferred, PreferredAnti []WeightedTerm
	// Err says which term can't be parsed; such a pod cannot be scheduled.
	Err error
}

// AffinityTerm is one term: which pods, and what "together" means.
type AffinityTerm struct {
	TopologyKey       string
	Selector          labels.Selector
	Namespaces        map[string]struct{}
	NamespaceSelector labels.Selector // of the namespaces' labels; nil for none
}

// WeightedTerm is a preferred term.
type WeightedTerm struct {
	AffinityTerm
	Weight int64
}

// Matches reports whether the term is about pod. namespaceLabels is called only
// if the term selects namespaces by their labels.
func (t *AffinityTerm) Matches(pod *core.Pod, namespaceLabels func(namespace string) labels.Set) bool {
	if _, named := t.Namespaces[pod.Namespace]; !named {
		if t.NamespaceSelector == nil || !t.NamespaceSelector.Matches(namespaceLabels(pod.Namespace)) {
			return false
		}
	}
	return t.Selector.Matches(labels.Set(pod.Labels))
}

// NewPodAffinity parses what a pod says about others; nil if nothing.
func NewPodAffinity(pod *core.Pod) *PodAffinity {
	a := pod.Spec.Affinity
	if a == nil || a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return nil
	}
	parsed := &PodAffinity{}
	if with := a.PodAffinity; with != nil {
		parsed.Required = parsed.terms(pod, with.RequiredDuringSchedulingIgnoredDuringExecution)
		parsed.Preferred = parsed.weighted(pod, with.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if without := a.PodAntiAffinity; without != nil {
		parsed.RequiredAnti = parsed.terms(pod, without.RequiredDuringSchedulingIgnoredDuringExecution)
		parsed.PreferredAnti = parsed.weighted(pod, without.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return parsed
}

func (a *PodAffinity) terms(pod *core.Pod, terms []corev1.PodAffinityTerm) []AffinityTerm {
	var parsed []AffinityTerm
	for i := range terms {
		if term, err := newAffinityTerm(pod, &terms[i]); err != nil {
			a.Err = err
		} else {
			parsed = append(parsed, term)
		}
	}
	return parsed
}

func (a *PodAffinity) weighted(pod *core.Pod, terms []corev1.WeightedPodAffinityTerm) []WeightedTerm {
	var parsed []WeightedTerm
	for i := range terms {
		if term, err := newAffinityTerm(pod, &terms[i].PodAffinityTerm); err != nil {
			a.Err = err
		} else {
			parsed = append(parsed, WeightedTerm{term, int64(terms[i].Weight)})
		}
	}
	return parsed
}

// newAffinityTerm parses a term. matchLabelKeys and mismatchLabelKeys are in its selector:
// the API server puts them there, with the values that the pod had when it was created.
func newAffinityTerm(pod *core.Pod, term *corev1.PodAffinityTerm) (AffinityTerm, error) {
	parsed := AffinityTerm{TopologyKey: term.TopologyKey, Namespaces: map[string]struct{}{}}
	var err error
	if parsed.Selector, err = metav1.LabelSelectorAsSelector(term.LabelSelector); err != nil {
		return parsed, fmt.Errorf("pod affinity term for %s: labelSelector: %w", term.TopologyKey, err)
	}
	for _, ns := range term.Namespaces {
		parsed.Namespaces[ns] = struct{}{}
	}
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		parsed.Namespaces[pod.Namespace] = struct{}{}
	}
	if term.NamespaceSelector == nil {
		return parsed, nil
	}
	if parsed.NamespaceSelector, err = metav1.LabelSelectorAsSelector(term.NamespaceSelector); err != nil {
		return parsed, fmt.Errorf("pod affinity term for %s: namespaceSelector: %w", term.TopologyKey, err)
	}
	return parsed, nil
}
