package batch

import (
	"slices"
	"strings"
	"testing"
)

// TestFailurePolicy: a rule that lacks a value is told which there are.
func TestFailurePolicy(t *testing.T) {
	spec := &job(t, "podFailurePolicy: {rules: [{onExitCodes: {values: [3, 2, 1]}}, {action: Count, onPodConditions: [{type: a}]}]}", "").Spec
	var said []string
	for _, err := range validateFailurePolicy(spec, specPath) {
		said = append(said, strings.TrimPrefix(err.Error(), "spec.podFailurePolicy."))
	}
	want := []string{
		`rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`,
		`rules[0].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]`,
		`rules[0].onExitCodes.values: Invalid value: [3,2,1]: must be ordered`,
		`rules[1].onPodConditions[0].status: Required value: valid values: ["False" "True" "Unknown"]`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(said, "\n     "), strings.Join(want, "\n     "))
	}
}
