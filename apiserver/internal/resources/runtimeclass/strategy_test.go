package runtimeclass

import (
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/resources/check"
)

func class(t *testing.T, text string) *nodev1.RuntimeClass {
	t.Helper()
	c := new(nodev1.RuntimeClass)
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestValidate(t *testing.T) {
	for text, want := range map[string]string{
		"{handler: runc}":  "",
		"{handler: Run_C}": `handler: Invalid value: "Run_C": a lowercase RFC 1123 label`,
		"{}":               "handler: Required value",
		"{handler: runc, overhead: {podFixed: {cpu: 100m, memory: 1Mi}}}":                                      "",
		"{handler: runc, overhead: {podFixed: {cpu: -1}}}":                                                     `overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
		"{handler: runc, scheduling: {nodeSelector: {'a b': c}}}":                                              "scheduling.nodeSelector: Invalid value",
		"{handler: runc, scheduling: {tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists}]}}": "scheduling.tolerations[1]: Duplicate value",
		"{handler: runc, scheduling: {tolerations: [{operator: Equal}]}}":                                      "scheduling.tolerations[0].operator: Invalid value",
	} {
		got := ""
		if err := validate(class(t, text), check.ShortName).ToAggregate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, got, want)
		}
	}
	errs := Strategy(clock.RealClock{}).Update.Validate(t.Context(), class(t, "{handler: a}"), class(t, "{handler: b}"))
	if len(errs) != 1 || errs[0].Field != "handler" {
		t.Errorf("another handler: %v", errs)
	}
}
