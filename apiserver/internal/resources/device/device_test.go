package device

import (
	"context"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/field"
)

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

func expect(t *testing.T, what string, errs field.ErrorList, want string) {
	t.Helper()
	got := ""
	if err := errs.ToAggregate(); err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s\n  got: %s\n want: %s", what, got, want)
	}
}

// The tables have upstream 1.37's answers for claims, slices and rules.

func TestClaims(t *testing.T) {
	const request = "{requests: [{name: r, exactly: {deviceClassName: c, allocationMode: All, tolerations: [%]}}]}"
	tolerated := func(text string) string { return strings.Replace(request, "%", text, 1) }
	const rest = "{requests: [{name: r, exactly: {deviceClassName: c, allocationMode: All}}], "
	for text, want := range map[string]string{
		tolerated("{key: k, operator: Exists}"):            "",
		tolerated("{operator: Exists, effect: NoExecute}"): "",
		tolerated("{key: k, operator: Exists, value: v}"): "devices.requests[0].exactly.tolerations[0].value: Invalid value: \"v\": must be " +
			"empty for operator `Exists`",
		tolerated("{key: k, operator: Equal, value: b d}"):              "devices.requests[0].exactly.tolerations[0].value: Invalid value: \"b d\"",
		tolerated("{key: k, operator: X}"):                              `devices.requests[0].exactly.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists"`,
		tolerated("{key: k, operator: Exists, effect: X}"):              `devices.requests[0].exactly.tolerations[0].effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"`,
		tolerated("{key: a b, operator: Exists}"):                       `devices.requests[0].exactly.tolerations[0].key: Invalid value: "a b"`,
		rest + "constraints: [{requests: [r], matchAttribute: a.b/c}]}": "",
		rest +
			"constraints: [{}]}": `devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required`,
		rest +
			"constraints: [{matchAttribute: abc}]}": `devices.constraints[0].matchAttribute: Invalid value: "abc": a fully qualified name must be a domain and a name separated by a slash`,
		rest + "constraints: [{distinctAttribute: a.b/c-d}]}": `devices.constraints[0].distinctAttribute: Invalid value: "c-d": a valid C identifier`,
		rest +
			"constraints: [{matchAttribute: a b/c}]}": `devices.constraints[0].matchAttribute: Invalid value: "a b": prefix: a lowercase RFC 1123 subdomain`,
		rest + "constraints: [{requests: [r, r], matchAttribute: a.b/c}]}": `devices.constraints[0].requests[1]: Duplicate value: "r"`,
		rest +
			"constraints: [{requests: [q], matchAttribute: a.b/c}]}": `devices.constraints[0].requests[0]: Invalid value: "q": must be the name of a request in the claim`,
		rest + "config: [{opaque: {driver: a.b, parameters: {x: y}}}]}": "",
		rest + "config: [{}]}":                         "devices.config[0].opaque: Required value",
		rest + "config: [{opaque: {parameters: {}}}]}": "devices.config[0].opaque.driver: Required value",
		rest + "config: [{opaque: {driver: a.b}}]}":    "devices.config[0].opaque.parameters: Required value",
		rest +
			"config: [{opaque: {driver: a.b, parameters: [1]}}]}": `devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`,
	} {
		var spec resourcev1.ResourceClaimSpec
		read(t, "devices: "+text, &spec)
		expect(t, text, validateClaim(t.Context(), &spec, nil), want)
	}
}

// TestSpaces: a claim that differs only in its spaces is the same claim.
func TestSpaces(t *testing.T) {
	strategy := claims(nil)
	one, two := &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaim{}
	read(t, "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}], config: [{opaque: {driver: a.b, parameters: {x: v}}}]}}", one)
	one.DeepCopyInto(two)
	two.Spec.Devices.Config[0].Opaque.Parameters.Raw = []byte("{ \"x\":\n\"v\" }")
	strategy.Default(one)
	strategy.Default(two)
	expect(t, "other spaces", strategy.Update.Validate(t.Context(), two, one), "")
	two.Spec.Devices.Config[0].Opaque.Parameters.Raw = []byte(`{"x":"z"}`)
	expect(t, "another value", strategy.Update.Validate(t.Context(), two, one), "spec: Invalid value")
}

func TestSlices(t *testing.T) {
	const pool = "driver: a.b, pool: {name: p, generation: 1, resourceSliceCount: 1}"
	const node = "{" + pool + ", nodeName: n"
	device := func(text string) string { return node + ", devices: [{name: d, " + text + "}]}" }
	for text, want := range map[string]string{
		device("attributes: {a: {int: 1}, a.b/c: {string: x}, v: {version: 1.2.3}}"): "",
		device("attributes: {a: {}}"): "spec.devices[0].attributes[a]: Invalid value: \"\": must " +
			"specify one of: `int`, `bool`",
		device("attributes: {a: {int: 1, bool: true}}"): "spec.devices[0].attributes[a]: Invalid value: \"{int, bool}\": " +
			"must specify exactly one of:",
		device("attributes: {a: {version: '1.2'}}"):                          `spec.devices[0].attributes[a].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0`,
		device("attributes: {a: {string: " + strings.Repeat("x", 65) + "}}"): "spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes",
		device("attributes: {b-d: {int: 1}}"):                                `spec.devices[0].attributes: Invalid value: "b-d": a valid C identifier`,
		device("capacity: {b-d: {value: 1}}"):                                `spec.devices[0].capacity: Invalid value: "b-d": a valid C identifier`,
		device("taints: [{key: k}]"):                                         "spec.devices[0].taints[0].effect: Required value",
		device("taints: [{key: k, effect: X}]"):                              `spec.devices[0].taints[0].effect: Unsupported value: "X"`,
		device("nodeName: n"): "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and " +
			"`allNodes` can only be set if",
		node + ", devices: [{name: d}, {name: d}]}": `spec.devices[1]: Duplicate value: "d"`,
		node + ", devices: [{}]}":                   `spec.devices[0].name: Invalid value: ""`,
		node + ", allNodes: true}":                  "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of",
		"{" + pool + "}":                            "spec: Required value: exactly one of",
		"{" + pool +
			", nodeName: ''}": `[spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string, spec: Required value`,
		"{" + pool +
			", allNodes: false}": "[spec.allNodes: Invalid value: false: must be either unset or set to true, spec: Required value",
		"{" + pool +
			", nodeSelector: {nodeSelectorTerms: []}}": "[spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term, " +
			"spec.nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one",
		"{" + pool +
			", perDeviceNodeSelection: true, devices: [{name: d}]}": "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or " +
			"`allNodes` is required when",
		"{driver: a.b, pool: {name: a//b, generation: -1, resourceSliceCount: 1}, allNodes: true}": `[spec.pool.name: Invalid value: ""`,
	} {
		var spec resourcev1.ResourceSliceSpec
		read(t, text, &spec)
		expect(t, text, validateSlice(&spec, nil), want)
	}
}

func TestTaintRules(t *testing.T) {
	for text, want := range map[string]string{
		"{taint: {key: k, effect: None}}": "",
		"{deviceSelector: {driver: a.b, pool: a/b, device: d}, taint: {key: k, effect: NoExecute}}": "",
		"{deviceSelector: {pool: ''}, taint: {key: k, effect: None}}":                               "spec.deviceSelector.pool: Required value",
		"{deviceSelector: {pool: B x}, taint: {key: k, effect: None}}":                              `spec.deviceSelector.pool: Invalid value: "B x"`,
		"{deviceSelector: {device: B x}, taint: {key: k, effect: None}}":                            `spec.deviceSelector.device: Invalid value: "B x"`,
	} {
		var spec resourcev1.DeviceTaintRuleSpec
		read(t, text, &spec)
		expect(t, text, validateTaintRule(&spec), want)
	}
}

// TestTaintedSince: a changed effect starts now, unless the client says when.
func TestTaintedSince(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 5, time.UTC))
	now := metav1.NewTime(clock.Now()).Rfc3339Copy()
	before, said := metav1.NewTime(now.Add(-2*time.Hour)), metav1.NewTime(now.Add(-time.Hour))
	old := &resourcev1.DeviceTaintRule{Spec: resourcev1.DeviceTaintRuleSpec{Taint: resourcev1.DeviceTaint{
		Effect: resourcev1.DeviceTaintEffectNone, TimeAdded: &before,
	}}}
	for name, test := range map[string]struct {
		effect resourcev1.DeviceTaintEffect
		added  metav1.Time
		want   metav1.Time
	}{
		"the same effect":      {resourcev1.DeviceTaintEffectNone, before, before},
		"another":              {resourcev1.DeviceTaintEffectNoExecute, before, now},
		"another, since then":  {resourcev1.DeviceTaintEffectNoExecute, said, said},
		"the same, since then": {resourcev1.DeviceTaintEffectNone, said, said},
	} {
		rule := old.DeepCopy()
		rule.Spec.Taint.Effect, rule.Spec.Taint.TimeAdded = test.effect, &test.added
		taintRules(clock).Update.Prepare(t.Context(), rule, old)
		if got := rule.Spec.Taint.TimeAdded; !got.Equal(&test.want) {
			t.Errorf("%s: since %v, want %v", name, got, test.want)
		}
	}
}

func TestExtendedNames(t *testing.T) {
	for name, want := range map[string]string{
		"a.b/c":           "",
		"abc":             "spec.extendedResourceName: Invalid value: \"abc\": a name must be a domain-prefixed path, such as 'example.com/my-prop'",
		"kubernetes.io/x": `spec.extendedResourceName: Invalid value: "kubernetes.io/x": must not have "kubernetes.io/" domain`,
		"requests.a.b/c":  `spec.extendedResourceName: Invalid value: "requests.a.b/c": must not have "requests." prefix`,
	} {
		expect(t, name, validateClass(t.Context(), &resourcev1.DeviceClassSpec{ExtendedResourceName: &name}), want)
	}
}

// TestSelectors: expressions are compiled as by upstream.
func TestSelectors(t *testing.T) {
	const complex = "Forbidden: too complex, exceeds cost limit"
	for text, want := range map[string]string{
		"true":                                                            "",
		`device.driver == "a.b"`:                                          "",
		`device.driver.matches("a")`:                                      "",
		"device.allowMultipleAllocations":                                 "",
		`device.attributes["a.b"].model == "x"`:                           "",
		`device.attributes["a.b"].model`:                                  "",
		`device.attributes["a.b"].?model.orValue("x") == "x"`:             "",
		`device.attributes["a.b"].x.matches(device.attributes["a.b"].y)`:  "",
		`device.attributes["a.b"].version.isGreaterThan(semver("1.0.0"))`: "",
		`device.capacity["a.b"].memory.compareTo(quantity("1Gi")) > 0`:    "",
		`cel.bind(a, device.driver, a == "b")`:                            "",
		"device.foo":                                                      "undefined field 'foo'",
		"1":                                                               `Invalid value: "1": must evaluate to bool or the unknown type, not int`,
		"dyn(1)":                                                          "not dyn",
		"device":                                                          "not kubernetes.DRADevice",
		"self":                                                            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'self'",
		"true &&":                                                         "Syntax error: mismatched input '<EOF>'",
		"":                                                                `Invalid value: "": compilation failed: ERROR: <input>:1:0: Syntax error`,
		"device.driver == 5":                                              "found no matching overload for '_==_' applied to '(string, int)'",
		`device.driver.split(".").exists(x, x.matches("a"))`: complex,
		`'` + strings.Repeat("a", 11000) + `' == "b"`:        "Too long: may not be more than 10240 bytes",
		`device.attributes["a"].all(k, device.attributes["b"].all(l, device.attributes["c"].all(m, device.attributes["d"].all(n, true))))`: complex,
	} {
		selectors := []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
		got := validateSelectors(t.Context(), selectors, specPath).ToAggregate()
		if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%.100s\n  got: %v\n want: %s", text, got, want)
		}
	}
}

// Compiling selectors stops when nobody waits for the result.
func TestSelectorsThatNobodyWaitsFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bad := resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: "1"}}
	errs := validateSelectors(ctx, []resourcev1.DeviceSelector{bad, bad}, specPath)
	if len(errs) != 1 || errs[0].Type != "InternalError" {
		t.Errorf("got %v, want one internal error", errs)
	}
}
