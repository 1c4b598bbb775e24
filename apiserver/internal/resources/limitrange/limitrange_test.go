package limitrange

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestValidate compares the answers for limit ranges with upstream 1.37's.
func TestValidate(t *testing.T) {
	for limits, want := range map[string]string{
		"[]": "",
		"[{type: Container, max: {cpu: 1}, min: {cpu: 2}}]":                                 `[spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1, spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1, spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1]`,
		"[{type: Container, default: {cpu: 3}, max: {cpu: 2}}]":                             `[spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 2, spec.limits[0].default[cpu]: Invalid value: "2": default value 3 is greater than max value 2]`,
		"[{type: Container, defaultRequest: {cpu: 3}, default: {cpu: 2}}]":                  `spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than default limit value 2`,
		"[{type: Container, maxLimitRequestRatio: {cpu: 0.5}}]":                             `spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1`,
		"[{type: Container, maxLimitRequestRatio: {cpu: 5}, max: {cpu: 4}, min: {cpu: 2}}]": `spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "5": ratio 5 is greater than max/min = 2.000000`,
		"[{type: Pod, default: {cpu: 1}}]": "spec.limits[0].default: Forbidden: may not be " +
			"specified when `type` is 'Pod'",
		"[{type: Pod, defaultRequest: {cpu: 1}}]": "spec.limits[0].defaultRequest: Forbidden: may not be " +
			"specified when `type` is 'Pod'",
		"[{type: Container}, {type: Container}]":   `spec.limits[1].type: Duplicate value: "Container"`,
		"[{type: Foo, max: {cpu: 1}}]":             `spec.limits[0].type: Invalid value: "Foo": must be a standard limit type or fully qualified`,
		"[{type: example.com/foo, max: {cpu: 1}}]": "",
		"[{type: Pod, max: {bogus: 1}}]":           `[spec.limits[0].max[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified, spec.limits[0].max[bogus]: Invalid value: "bogus": must be a standard resource for containers]`,
		"[{type: Pod, max: {storage: 1}}]":         `spec.limits[0].max[storage]: Invalid value: "storage": must be a standard resource for containers`,
		"[{type: Container, max: {cpu: -1}}]":      "",
		"[{type: PersistentVolumeClaim}]": "spec.limits[0].limits: Required value: either minimum or " +
			"maximum storage value is required, but neither was provided",
		"[{type: PersistentVolumeClaim, min: {storage: 5Gi}, max: {storage: 1Gi}}]":                `spec.limits[0].min[storage]: Invalid value: "5Gi": min value 5Gi is greater than max value 1Gi`,
		"[{type: Container, default: {hugepages-2Mi: 2Mi}, defaultRequest: {hugepages-2Mi: 1Mi}}]": `spec.limits[0].defaultRequest[hugepages-2Mi]: Invalid value: "1Mi": default value 2Mi must equal to defaultRequest value 1Mi in hugepages-2Mi`,
	} {
		l := &corev1.LimitRange{}
		if err := yaml.UnmarshalStrict([]byte("spec: {limits: "+limits+"}"), l); err != nil {
			t.Fatal(err)
		}
		setDefaults(l)
		got := ""
		if errs := validate(l); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("%s:\n  got: %s\n want: %s", limits, got, want)
		}
	}
}
