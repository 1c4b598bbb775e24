package validationrules

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/customresources/structural"
)

func schemaOf(t *testing.T, text string) *structural.Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	s, err := structural.Compile(props)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valueOf(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// spec is the schema of an object with this spec.
func spec(text string) string {
	return `{"type":"object","properties":{"spec":` + text + `}}`
}

// ruled is the schema of a string of up to ten letters with one rule.
func ruled(rule string) string {
	return spec(`{"type":"string","maxLength":10,"x-kubernetes-validations":[` + rule + `]}`)
}

// The messages are kube-apiserver 1.37's.
func TestCheck(t *testing.T) {
	const flags = `{"type":"array","items":{"type":"array","items":{"type":"boolean","x-kubernetes-validations":[{"rule":"self"}]}}}`
	for schema, want := range map[string]string{
		ruled(`{"rule":"self == 'a'"}`): "",
		ruled(`{"rule":" "}`):           "s.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified",
		ruled(`{"rule":"self ==\n'a'"}`): "s.properties[spec].x-kubernetes-validations[0].message: Required value: message must be " +
			"specified if rule contains line breaks",
		ruled(`{"rule":"self == 'a'","message":"a\nb"}`):        `s.properties[spec].x-kubernetes-validations[0].message: Invalid value: "a\nb": must not contain line breaks`,
		ruled(`{"rule":"self == 'a'","messageExpression":"1"}`): "messageExpression must evaluate to a string",
		ruled(`{"rule":"self == 'a'","reason":"Huh"}`):          `reason: Unsupported value: "Huh": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
		ruled(`{"rule":"self == 'a'","fieldPath":".b"}`):        `fieldPath: Invalid value: ".b": must be a valid path`,
		ruled(`{"rule":"self"}`):                                `rule: Invalid value: {"Rule":"self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool`,
		ruled(`{"rule":"foo == 1"}`): "compilation failed: ERROR: <input>:1:1: undeclared " +
			"reference to 'foo' (in container '')",
		ruled(`{"rule":"self == 'a'","optionalOldSelf":true}`):                                                                                                          "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
		spec(`{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[{"rule":"true"}]}`):                                                              "failed to construct type information for x-kubernetes-validations rules",
		spec(`{"type":"object","default":{},"properties":{"a":{"type":"integer","default":1}},"x-kubernetes-validations":[{"rule":"self.a > 0"}]}`):                     `s.properties[spec].default: Invalid value: "object": no such key: a evaluating rule: self.a > 0`,
		spec(`{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 0"},{"rule":"self > oldSelf"}]}`):                                               `s.properties[spec].default: Invalid value: 1: failed rule: self > oldSelf`,
		spec(`{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self >= oldSelf"}]}`):                                                                  "",
		spec(`{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"oldSelf.hasValue()","optionalOldSelf":true}]}`):                                        `s.properties[spec].default: Invalid value: 1: failed rule: oldSelf.hasValue()`,
		spec(`{"type":"string","default":"b","x-kubernetes-validations":[{"rule":"self == 'a'"}]}`):                                                                     `s.properties[spec].default: Invalid value: "b": failed rule: self == 'a'`,
		spec(`{"type":"array","maxItems":9,"items":{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`):                           "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[spec]",
		spec(`{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x == y))"}]}`):                                     "rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x",
		spec(`{"type":"array","maxItems":3000,"items":{"type":"string","maxLength":100},"x-kubernetes-validations":[{"rule":"oldSelf.all(x, self.exists(y, x==y))"}]}`): "rule: Forbidden: estimated rule cost exceeds budget by factor of 41.4x",
		spec(flags): "",
		// As in Istio's and MetalLB's definitions, with lists without a bound.
		spec(`{"type":"array","items":{"type":"object","properties":{"port":{"type":"integer","x-kubernetes-validations":[{"rule":"0 < self && self <= 65535"}]}}}}`):                                            "",
		spec(`{"type":"array","items":{"type":"object","properties":{"t":{"type":"string","x-kubernetes-validations":[{"rule":"duration(self).getSeconds() >= 1 && duration(self).getSeconds() <= 65535"}]}}}}`): "",
		spec(strings.ReplaceAll(flags, `"type":"array",`,
			`"type":"array","maxItems":5000,`)): "estimated rule cost exceeds budget by factor of 2.5x",
		`{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name.startsWith('a') && self.kind != ''"}]}`:           "",
		`{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.labels.size() > 0"}]}`:                                 "undefined field 'labels'",
		spec(`{"type":"string","maxLength":20,"x-kubernetes-validations":[{"rule":"quantity(self).isLessThan(quantity('1Gi'))"}]}`): "",
	} {
		errs := Check(t.Context(), field.NewPath("s"), schemaOf(t, schema), nil)
		got := ""
		if len(errs) > 0 {
			got = errs[0].Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", schema, got, want)
		}
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if errs := Check(ctx, field.NewPath("s"), schemaOf(t, ruled(`{"rule":"self == 'a'"}`)), nil); len(errs) == 0 {
		t.Error("went on after its context ended")
	}
}

const wholeSchema = `{"type":"object","properties":{
	"n":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 10","message":"small please"}]},
	"s":{"type":"string","maxLength":20,"x-kubernetes-validations":[
		{"rule":"self.startsWith('a')","messageExpression":"'got ' + self","reason":"FieldValueForbidden"},
		{"rule":"self == oldSelf","message":"immutable"}]},
	"o":{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"oldSelf.hasValue() && self == oldSelf.value()","optionalOldSelf":true,"message":"no more"}]},
	"l":{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
		"x-kubernetes-validations":[{"rule":"self.size() < 3","reason":"FieldValueDuplicate"}],
		"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":5},"v":{"type":"integer"},"x-y":{"type":"string"}},
			"x-kubernetes-validations":[{"rule":"self.v > 0","fieldPath":".v","reason":"FieldValueRequired"},{"rule":"self.v >= oldSelf.v","message":"only more"}]}},
	"m":{"type":"object","maxProperties":4,"additionalProperties":{"type":"string","maxLength":4,"x-kubernetes-validations":[{"rule":"self != 'bad'"}]}},
	"z":{"type":"string","nullable":true,"x-kubernetes-validations":[{"rule":"false","messageExpression":"'a\\nb'","message":"fallback"}]},
	"t":{"type":"array","maxItems":4,"items":{"type":"string","maxLength":4,"x-kubernetes-validations":[{"rule":"self != 'bad'"}]}},
	"d":{"type":"integer","x-kubernetes-validations":[{"rule":"10/self == 1","message":"ten","reason":"FieldValueDuplicate"}]},
	"long":{"type":"string","x-kubernetes-validations":[{"rule":"self.matches('(a|b)*(a|b)*(a|b)*(a|b)*(a|b)*(a|b)*')"}]}
}}`

// The messages are kube-apiserver 1.37's.
func TestValidate(t *testing.T) {
	schema := schemaOf(t, wholeSchema)
	compiled, err := Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ value, old, want string }{
		"nothing":              {`{}`, ``, ``},
		"a message":            {`{"n":11}`, ``, `n: Invalid value: 11: small please`},
		"a message expression": {`{"s":"b"}`, ``, `s: Forbidden: got b`},
		"a useless message":    {`{"z":"q"}`, ``, `z: Invalid value: "q": fallback`},
		"null":                 {`{"z":null}`, ``, ``},
		"a transition":         {`{"s":"ab"}`, `{"s":"aa"}`, `s: Invalid value: "ab": immutable`},
		"what was not there":   {`{"s":"ab"}`, `{}`, ``},
		"optional, new":        {`{"o":"x"}`, ``, `o: Invalid value: "x": no more`},
		"optional, kept":       {`{"o":"x"}`, `{"o":"x"}`, ``},
		"entries and paths": {`{"l":[{"k":"a","v":0},{"k":"b"}]}`, ``,
			`[l[0].v: Required value: failed rule: self.v > 0, l[1]: Invalid value: "object": no such key: v evaluating rule: self.v > 0]`},
		"no answer":                     {`{"d":0}`, ``, `d: Invalid value: "integer": division by zero evaluating rule: ten`},
		"a value again":                 {`{"d":5}`, ``, `d: Duplicate value: 5`},
		"too many":                      {`{"l":[{"k":"a","v":1},{"k":"b","v":1},{"k":"c","v":1}]}`, ``, `l: Duplicate value`},
		"entries by their keys":         {`{"l":[{"k":"b","v":5},{"k":"a","v":1}]}`, `{"l":[{"k":"a","v":2},{"k":"b","v":4}]}`, `l[1]: Invalid value: only more`},
		"a map's entries":               {`{"m":{"a":"bad"}}`, ``, `m[a]: Invalid value: "bad": failed rule: self != 'bad'`},
		"unchanged":                     {`{"m":{"a":"bad"},"n":12}`, `{"m":{"a":"bad"},"n":12}`, ``},
		"an entry of what is unchanged": {`{"t":["bad"],"d":10}`, `{"t":["bad"]}`, ``},
		"an entry beside a change":      {`{"t":["bad","x"]}`, `{"t":["bad"]}`, `t[0]: Invalid value: "bad": failed rule: self != 'bad'`},
		"changed beside it":             {`{"m":{"a":"bad"},"n":13}`, `{"m":{"a":"bad"},"n":12}`, `n: Invalid value: 13: small please`},
		"too dear": {`{"long":"` + strings.Repeat("a", 3<<20) + `"}`, ``,
			`long: Invalid value: "string": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.matches('(a|b)*(a|b)*(a|b)*(a|b)*(a|b)*(a|b)*')`},
	} {
		var old any
		if c.old != "" {
			old = valueOf(t, c.old)
		}
		got := ""
		if err := compiled.Validate(t.Context(), valueOf(t, c.value), old, c.old != "").ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s\n  got: %s\n want: %s", name, got, c.want)
		}
	}
}

// TestBudget: all rules of an object together have one cost limit.
func TestBudget(t *testing.T) {
	const flags = `{"type":"array","maxItems":20,"items":{"type":"boolean"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x))"}]}`
	compiled, err := Compile(schemaOf(t, `{"type":"object","properties":{"a":`+flags+`,"b":`+flags+`,"c":`+flags+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	const all = `[true,true,true,true,true,true,true,true,true,true]`
	run := &run{ctx: t.Context(), budget: celexpression.NewBudget(500)}
	run.node(compiled.root, nil, valueOf(t, `{"a":`+all+`,"b":`+all+`,"c":`+all+`}`), nil, false, false)
	const want = `b: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run`
	if err := run.errs.ToAggregate(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
