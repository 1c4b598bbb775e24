package disruptionbudget

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// TestValidate compares the answers for budgets with upstream 1.37's.
func TestValidate(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                                                 "",
		"{minAvailable: 1, selector: {}}":                    "",
		"{minAvailable: 1, maxUnavailable: 1}":               "minAvailable and maxUnavailable cannot be both set",
		"{minAvailable: -1}":                                 "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0",
		`{maxUnavailable: "150%"}`:                           `spec.maxUnavailable: Invalid value: "150%": must not be greater than 100%`,
		`{maxUnavailable: abc}`:                              `spec.maxUnavailable: Invalid value: "abc": a valid percent string must be a numeric string followed by an ending '%'`,
		`{maxUnavailable: "-5%"}`:                            `spec.maxUnavailable: Invalid value: "-5%": a valid percent string must be`,
		`{maxUnavailable: "99999999999999999999%"}`:          "spec.maxUnavailable: Invalid value",
		"{minAvailable: 1, unhealthyPodEvictionPolicy: Foo}": `spec.unhealthyPodEvictionPolicy: Unsupported value: "Foo": supported values: "AlwaysAllow", "IfHealthyBudget"`,
		"{minAvailable: 1, selector: {matchExpressions: [{key: a, operator: Foo}]}}": `spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator`,
	} {
		b := &policyv1.PodDisruptionBudget{}
		if err := yaml.UnmarshalStrict([]byte("spec: "+spec), b); err != nil {
			t.Fatal(err)
		}
		got := ""
		if errs := validate(b); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s:\n  got: %s\n want: %s", spec, got, want)
		}
	}
	b := &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: -1, DisruptionsAllowed: -1}}
	if errs := validateStatus(b); len(errs) != 2 {
		t.Error(errs)
	}
}
