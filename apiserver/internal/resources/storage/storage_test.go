package storage

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestTopologiesAreDistinct: the order of keys and values does not matter, and many terms
// do not take minutes.
func TestTopologiesAreDistinct(t *testing.T) {
	term := func(keysAndValues ...[]string) (out corev1.TopologySelectorTerm) {
		for _, kv := range keysAndValues {
			out.MatchLabelExpressions = append(out.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{Key: kv[0], Values: kv[1:]})
		}
		return out
	}
	terms := []corev1.TopologySelectorTerm{term([]string{"a", "1", "2"}, []string{"b", "3"}), term([]string{"b", "3"}, []string{"a", "2", "1"}),
		term([]string{"a", "1"}), term()}
	errs := validateTopologies(terms)
	if len(errs) != 2 || errs[0].Field != "allowedTopologies[1].matchLabelExpressions" || errs[1].Field != "allowedTopologies[3].matchLabelExpressions" {
		t.Errorf("%v", errs)
	}
	terms = nil
	for i := range 50_000 {
		terms = append(terms, term([]string{"a", fmt.Sprint(i)}))
	}
	if errs := validateTopologies(terms); len(errs) > 0 {
		t.Errorf("%.300v", errs)
	}
}
