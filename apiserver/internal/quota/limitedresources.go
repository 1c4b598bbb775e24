package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LimitedResource is what may be used only if a quota covers it: a resource's usage under names
// that contain one of some words, or within one of some scopes (upstream's
// LimitedResource).
type LimitedResource struct {
	APIGroup      string                                     `json:"apiGroup"`
	Resource      string                                     `json:"resource"`
	MatchContains []string                                   `json:"matchContains"`
	MatchScopes   []corev1.ScopedResourceSelectorRequirement `json:"matchScopes"`
}

// checkCovered is an error for the limited part of a change that no quota covers; will
// is what the object uses.
func (c Change) checkCovered(will corev1.ResourceList, quotas []*corev1.ResourceQuota) error {
	names, scopes := map[corev1.ResourceName]bool{}, []corev1.ScopedResourceSelectorRequirement{}
	for _, l := range c.LimitedResources {
		for name := range will {
			if l.APIGroup == c.Resource.Group && l.Resource == c.Resource.Resource &&
				slices.ContainsFunc(l.MatchContains, func(word string) bool { return strings.Contains(string(name), word) }) {
				names[name] = true
			}
		}
		for _, term := range l.MatchScopes {
			if termMatches(term, c.New) {
				scopes = append(scopes, term)
			}
		}
	}
	for _, q := range quotas {
		if scopesMatch(q, c.New) {
			for name := range withNames(will, q.Spec.Hard) {
				delete(names, name)
			}
		}
		for _, term := range scopeTerms(q) {
			if termMatches(term, c.New) {
				scopes = slices.DeleteFunc(scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return s.ScopeName == term.ScopeName })
			}
		}
	}
	if len(names) > 0 {
		var text []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			text = append(text, string(name))
		}
		return fmt.Errorf("insufficient quota to consume: %s", strings.Join(text, ","))
	}
	if len(scopes) > 0 {
		return fmt.Errorf("insufficient quota to match these scopes: %v", scopes)
	}
	return nil
}
