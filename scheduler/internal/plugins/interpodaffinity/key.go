package interpodaffinity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// The keys of tallies. Each contains everything that its count depends on.

// identity is what the terms of other pods can match of a pod.
func identity(what string, pod *core.Pod) string {
	return what + " " + pod.Namespace + "/" + labels.FormatLabels(pod.Labels)
}

// termsKey is what is counted for terms.
func termsKey(what string, terms []framework.AffinityTerm) string {
	var b strings.Builder
	b.WriteString(what)
	for i := range terms {
		writeTerm(&b, &terms[i])
	}
	return b.String()
}

// weightedKey is what is counted for terms that have weights.
func weightedKey(what string, terms []framework.WeightedTerm) string {
	var b strings.Builder
	b.WriteString(what)
	for i := range terms {
		writeTerm(&b, &terms[i].AffinityTerm)
		fmt.Fprint(&b, "*", terms[i].Weight)
	}
	return b.String()
}

func writeTerm(b *strings.Builder, term *framework.AffinityTerm) {
	b.WriteString(" " + term.TopologyKey + " of ")
	writeSelector(b, term.Selector)
	if len(term.Namespaces) > 0 {
		b.WriteString(" in " + strings.Join(slices.Sorted(maps.Keys(term.Namespaces)), ","))
	}
	if term.NamespaceSelector != nil {
		b.WriteString(" in those ")
		writeSelector(b, term.NamespaceSelector)
	}
}

// writeSelector also distinguishes a selector that matches everything from one
// that matches nothing, which have the same text.
func writeSelector(b *strings.Builder, selector labels.Selector) {
	fmt.Fprintf(b, "(%s %t)", selector, selector.Empty())
}
