package priorityclass

import (
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

func class(t *testing.T, text string) *schedulingv1.PriorityClass {
	t.Helper()
	c := new(schedulingv1.PriorityClass)
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	Strategy(clock.RealClock{}).Default(c)
	return c
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		"{metadata: {name: a}, value: 1000000000}":                           "",
		"{metadata: {name: a}, value: -2000000000, preemptionPolicy: Never}": "",
		"{metadata: {name: a}, value: 1000000001}": "value: Forbidden: maximum allowed value of a user " +
			"defined priority is 1000000000",
		"{metadata: {name: a}, preemptionPolicy: Always}": `preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"`,
		"{metadata: {name: system-own}}": "metadata.name: Forbidden: priority class names with 'system-' " +
			"prefix are reserved for system use only. error: system-own is not a known system priority class",
		"{metadata: {name: system-node-critical}, value: 2000001000}": "",
		"{metadata: {name: system-node-critical}, value: 7}": "metadata.name: Forbidden: priority class names with 'system-' " +
			"prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000",
		"{metadata: {name: system-cluster-critical}, value: 2000000000, globalDefault: true}": "metadata.name: Forbidden: priority class names with 'system-' " +
			"prefix are reserved for system use only. error: globalDefault of system-cluster-critical PriorityClass must be false",
	} {
		got := ""
		if err := validate(class(t, text)).ToAggregate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, got, want)
		}
	}
}

func TestWhatStays(t *testing.T) {
	old := class(t, "{metadata: {name: a}, value: 1}")
	if errs := validateUpdate(t.Context(), class(t, "{metadata: {name: a}, value: 1, globalDefault: true, description: d}"), old); len(errs) > 0 {
		t.Error(errs)
	}
	errs := validateUpdate(t.Context(), class(t, "{metadata: {name: a}, value: 2, preemptionPolicy: Never}"), old)
	if len(errs) != 2 || errs[0].Field != "value" || errs[1].Field != "preemptionPolicy" {
		t.Error(errs)
	}
}
