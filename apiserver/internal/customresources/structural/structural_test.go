package structural

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func propsOf(t *testing.T, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return props
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	value, err := decodeValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

const whole = `{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{
	"a":{"type":"string","maxLength":3,"pattern":"^[a-z]*$","default":"x"},
	"n":{"type":"integer","minimum":1,"nullable":true},
	"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
	"port":{"x-kubernetes-int-or-string":true},
	"any":{"x-kubernetes-preserve-unknown-fields":true},
	"no":{"type":"object","not":{"required":["z"]}},
	"short":{"type":"integer","format":"int32","maximum":5000000000},
	"one":{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}},
	"long":{"type":"integer","format":"int64"},"single":{"type":"number","format":"float"},
	"map":{"type":"object","additionalProperties":{"type":"object","properties":{"v":{"type":"boolean","default":true}}}},
	"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
		"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"e":{"type":"string","enum":["p","q"]}}}}}}}}`

func TestFilledAndPruned(t *testing.T) {
	s, err := Compile(propsOf(t, whole))
	if err != nil {
		t.Fatal(err)
	}
	got := object(t,
		`{"kind":"K","metadata":{"name":"m"},"odd":1,"spec":{"odd":1,"n":null,"a":null,"any":null,"port":null,"free":{"any":{"x":1}},"map":{"m":{"odd":2}},"list":[{"k":"1","odd":3}]}}`)
	dropped := s.Prune(got, true)
	s.Complete(got)
	want := object(t, `{"kind":"K","metadata":{"name":"m"},"spec":{"n":null,"a":"x","free":{"any":{"x":1}},"map":{"m":{"v":true}},"list":[{"k":"1"}]}}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ninstead of\n%v", got, want)
	}
	if want := []string{"odd", "spec.list[0].odd", "spec.map.m.odd", "spec.odd"}; !slices.Equal(dropped, want) {
		t.Errorf("dropped %q", dropped)
	}
}

func TestValidate(t *testing.T) {
	s, err := Compile(propsOf(t, whole))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"a":"x","n":1,"port":80}`:                  "",
		`{"a":"x","port":"http","n":null}`:           "",
		`{"n":1}`:                                    "spec.a: Required value",
		`{"a":"long"}`:                               "spec.a: Too long: may not be more than 3 bytes",
		`{"a":"LONG"}`:                               "spec.a: Too long: may not be more than 3 bytes",
		`{"a":"X"}`:                                  `spec.a: Invalid value: "X": spec.a in body should match '^[a-z]*$'`,
		`{"a":"x","n":0}`:                            "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1",
		`{"a":"x","n":"1"}`:                          `spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"`,
		`{"a":"x","port":true}`:                      `spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"`,
		`{"a":"x","list":[{"k":"1"},{"k":"1"}]}`:     `spec.list[1]: Duplicate value: {"k":"1"}`,
		`{"a":"x","list":[{"k":"1","e":1}]}`:         `[spec.list[0].e: Invalid value: "integer": spec.list[0].e in body must be of type string: "integer", spec.list[0].e: Unsupported value: 1: supported values: "p", "q"]`,
		`{"list":[{"k":"1"},{"k":"1"}],"n":0}`:       `[spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1, spec.a: Required value, spec.list[1]: Duplicate value: {"k":"1"}]`,
		`{"a":"x","list":[{"k":"1","e":"z"}]}`:       `spec.list[0].e: Unsupported value: "z": supported values: "p", "q"`,
		`{"a":"x","map":{"m":{"v":1}}}`:              `spec.map.m.v: Invalid value: "integer": spec.map.m.v in body must be of type boolean: "integer"`,
		`{"a":"x","list":{"k":"1"}}`:                 `spec.list: Invalid value: "object": spec.list in body must be of type array: "object"`,
		`{"a":"x","free":{"n":0,"list":"anything"}}`: "",
		`{"a":"x","n":1.5}`: `[spec.n: Invalid value: "number": spec.n in body must be of type integer: "number", ` +
			`<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.n]`,
		`{"a":"x","n":0.5}`: `[spec.n: Invalid value: "number": spec.n in body must be of type integer: "number", ` +
			`<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.n, spec.n: Invalid value: 0.5: spec.n in body should be greater than or equal to 1]`,
		`{"a":"x","long":1.5}`: `[spec.long: Invalid value: "float64": spec.long in body must be of type int64: "float64", ` +
			`<nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.long]`,
		`{"a":"x","short":1}`: `<nil>: Invalid value: "": Maximum boundary value must be of type integer with format int32 in spec.short`,
		`{"a":"x","short":4000000000}`: `[<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.short, ` +
			`<nil>: Invalid value: "": Maximum boundary value must be of type integer with format int32 in spec.short]`,
		`{"a":"x","one":[]}`: `[spec.one: Invalid value: "array": spec.one in body must be of type object: "array", ` +
			`<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives]`,
		`{"a":"x","list":[[1],{"k":"1"},{"k":"1"}]}`: `[spec.list[0]: Invalid value: "array": spec.list[0] in body must be of type object: "array", ` +
			`spec.list[0]: Invalid value: [1]: must be an object for an array of list-type map]`,
		`{"a":"x","single":1e300}`: `<nil>: Invalid value: "": Checked value must be of type number with format float in spec.single`,
		`{"a":"x","no":17}`: `[spec.no: Invalid value: "integer": spec.no in body must be of type object: "integer", ` +
			`<nil>: Invalid value: "": "spec.no" must not validate the schema (not)]`,
		`{"a":"x","no":null}`: `spec.no: Invalid value: "null": spec.no in body must be of type object: "null"`,
		`{"a":"x","n":1.0}`:   "",
	} {
		whole := map[string]any{"spec": object(t, value)}
		got := ""
		errs := s.Validate(nil, whole, nil, false)
		if err := errs.ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n  got: %s\n want: %s", value, got, want)
		}
		// An object in the place of a list can't be compared with its old value.
		if errs := s.Validate(nil, whole, whole, true); len(errs) > 0 && !strings.Contains(value, `"list":{`) {
			t.Errorf("%s: errors in what did not change: %v", value, errs)
		}
	}
}

// TestClosed: with additionalProperties: false there are no fields, also in an alternative.
func TestClosed(t *testing.T) {
	props := propsOf(t, `{"type":"object","properties":{"a":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"additionalProperties":false},
		"b":{"type":"object","properties":{"c":{"type":"string"}},"anyOf":[{"additionalProperties":false},{"required":["c"]}]}}}`)
	if errs := Check(field.NewPath("s"), props); len(errs) > 0 {
		t.Fatal(errs)
	}
	s, err := Compile(props)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"a":{},"b":{}}`: "<nil>",
		`{"b":{"c":"x"}}`: "<nil>",
		`{"a":{"y":1}}`:   `a: Invalid value: "y": a.y in body is a forbidden property`,
		`{"b":{"d":"x"}}`: `[<nil>: Invalid value: "": "b" must validate at least one schema (anyOf), b: Invalid value: "d": b.d in body is a forbidden property]`,
	} {
		if got := fmt.Sprint(s.Validate(nil, object(t, value), nil, false).ToAggregate()); got != want {
			t.Errorf("%s\n  got: %s\n want: %s", value, got, want)
		}
	}
}

// TestUnchanged: unchanged values are skipped as by upstream, which takes no
// object for unchanged that has a field unknown to its schema.
func TestUnchanged(t *testing.T) {
	s, err := Compile(propsOf(t, `{"type":"object","required":["b"],"properties":{
		"apiVersion":{"type":"string","pattern":"v1$"},"kind":{"type":"string"},"a":{"type":"string","maxLength":1},
		"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"required":["c"]},
		"list":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"required":["c"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"a":"xx"}`:                       "",
		`{"a":"xx","metadata":{}}`:         "b: Required value",
		`{"a":"xx","b":1}`:                 "",
		`{"b":1,"free":{}}`:                "",
		`{"b":1,"free":{"d":1}}`:           "free.c: Required value",
		`{"b":1,"list":[{"d":1}]}`:         "",
		`{"b":1,"apiVersion":"g/v2"}`:      `apiVersion: Invalid value: "g/v2": apiVersion in body should match 'v1$'`,
		`{"apiVersion":"g/v2","kind":"A"}`: "",
	} {
		got := ""
		if err := s.Validate(nil, object(t, value), object(t, value), true).ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\n  got: %s\n want: %s", value, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for schema, want := range map[string]string{
		whole:                               "",
		`{"type":"string"}`:                 "s.type: Invalid value: \"string\": must be object at the root",
		`{"type":"object","nullable":true}`: "s.nullable: Forbidden: nullable cannot be true at the root",
		`{"x-kubernetes-preserve-unknown-fields":true}`: "",
		`{}`:                                  "s.type: Required value: must not be empty at the root",
		`{"type":"object","dependencies":{}}`: "s.dependencies: Forbidden: dependencies is not supported",
		`{"type":"object","$schema":"x"}`:     `s: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`,
		`{"type":"object","$schema":"x","nullable":true}`:                                                                                                                            "s.nullable: Forbidden: nullable cannot be true at the root",
		`{"type":"object","properties":{"a":{"type":"string","not":{"$schema":"x"}}}}`:                                                                                               `s: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`,
		`{"type":"object","properties":{"a":{}}}`:                                                                                                                                    "s.properties[a].type: Required value: must not be empty for specified object fields",
		`{"type":"object","properties":{"a":{"type":"string","default":1}}}`:                                                                                                         `s.properties[a].default: Invalid value: "integer"`,
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"default":true}}}`:                                                                                    "",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"default":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}`:                                     `s.properties[a].default`,
		`{"type":"object","properties":{"a":{"type":"object","default":{"b":[1]},"properties":{"b":{"x-kubernetes-int-or-string":true}}}}}`:                                          "",
		`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-preserve-unknown-fields":true}}}`:                                                                          "s.properties[a].items: Required value: must be specified",
		`{"type":"object","anyOf":[{"additionalProperties":true}]}`:                                                                                                                  "s.anyOf[0].additionalProperties: Forbidden: must be undefined to be structural",
		`{"type":"object","anyOf":[{"additionalProperties":false}]}`:                                                                                                                 "",
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                                                                                                                      "s.properties[a].items: Required value: must be specified",
		`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`:                                                                                                       "must be a valid regular expression, but isn't",
		`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"type":"string"}]}}}`:                                                                                         "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}`:                                                    "",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]}]}}}`:                                        "",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"}]}}}`:                                                                       "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}}}`:                                                    "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"allOf":[{},{"anyOf":[{"type":"integer"},{"type":"string"}]}]}}}`:                                     "s.properties[a].allOf[1].anyOf[0].type: Forbidden: must be empty to be structural",
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"oneOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]}]}}}`:                                        "s.properties[a].oneOf[0].anyOf[0].type: Forbidden: must be empty to be structural",
		`{"type":"object","properties":{"metadata":{"type":"object","description":"x"}}}`:                                                                                            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
		`{"type":"object","anyOf":[{"properties":{"z":{"minLength":1}}}]}`:                                                                                                           "s.properties[z]: Required value: because it is defined in s.anyOf[0].properties[z]",
		`{"type":"object","properties":{"a":{"type":"object"}},"not":{"anyOf":[{"properties":{"a":{"properties":{"z":{"minLength":1}}}}}]}}`:                                         "s.properties[a].properties[z]: Required value: because it is defined in s.not.anyOf[0].properties[a].properties[z]",
		`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"object","anyOf":[{"properties":{"b":{"minLength":1}}}]}},"oneOf":[{"properties":{"z":{"minLength":1}}}]}`: "",
		`{"type":"object","allOf":[{"items":{"minLength":1}}]}`:                                                                                                                      "s.items: Required value: because it is defined in s.allOf[0].items",
		`{"type":"object","properties":{"metadata":{"type":"object"}},"anyOf":[{"properties":{"metadata":{}}}]}`:                                                                     "s.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
		`{"type":"object","properties":{"a":{"type":"object","properties":{"metadata":{"type":"string"}},"not":{"properties":{"metadata":{"minLength":1}}}}}}`:                       "s.properties[a].not.properties[metadata]: Forbidden: must not be specified in a nested context",
		`{"type":"object","properties":{"kind":{"type":"string","default":"A"}}}`:                                                                                                    "s.properties[kind].default: Forbidden: must not be set in top-level kind",
		`{"type":"object","properties":{"metadata":{"type":"object","default":{}}}}`:                                                                                                 "s.properties[metadata].default: Forbidden: must not be set in top-level metadata",
		`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3}}}}}`:                                                        "",
	} {
		errs := Check(field.NewPath("s"), propsOf(t, schema))
		got := ""
		if len(errs) > 0 {
			got = errs[0].Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", schema, got, want)
		}
	}
}

// TestViolations: only what keeps a stored schema from being structural counts, in order of the words.
func TestViolations(t *testing.T) {
	props := propsOf(t, `{"nullable":true,"properties":{"b":{"type":"odd"},"a":{"type":"object","properties":{"c":{}}},"a-b":{}}}`)
	want := "[s.properties[a-b].type: Required value: must not be empty for specified object fields, " +
		"s.properties[a].properties[c].type: Required value: must not be empty for specified object fields, s.type: Required value: must not be empty at the root]"
	if got := Violations(field.NewPath("s"), props).ToAggregate(); got.Error() != want {
		t.Errorf("%v\nwant %s", got, want)
	}
}

// TestEmbeddedDefaults: the default of an embedded object's metadata needs no
// schema for the fields of metadata, and unknown ones are dropped.
func TestEmbeddedDefaults(t *testing.T) {
	const full = `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"Bar","unknown":"u"}}`
	const open = `"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true`
	props := propsOf(t, `{"type":"object","properties":{
		"fields":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{
			"apiVersion":{"type":"string","default":"v1"},"kind":{"type":"string","default":"Foo"},
			"metadata":{"type":"object","properties":{"name":{"type":"string","default":"Bar"},"unknown":{"type":"string","default":"u"}}}}},
		"whole":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{
			"apiVersion":{"type":"string","default":"v1"},"kind":{"type":"string","default":"Foo"},
			"metadata":{"type":"object","default":{"name":"Bar","unknown":"u"}}}},
		"object":{"type":"object","default":`+full+`,`+open+`},
		"around":{"type":"object","default":{"in":`+full+`},"properties":{"in":{"type":"object",`+open+`}}}}}`)
	if errs := Check(field.NewPath("s"), props); len(errs) > 0 {
		t.Fatal(errs)
	}
	s, err := Compile(props)
	if err != nil {
		t.Fatal(err)
	}
	got := object(t, `{"fields":{"metadata":{}},"whole":{}}`)
	s.Default(got)
	embedded := object(t, `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"Bar"}}`)
	want := map[string]any{"fields": embedded, "whole": embedded, "object": embedded, "around": map[string]any{"in": embedded}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ninstead of\n%v", got, want)
	}
	wrong := `{"type":"object","properties":{"o":{"type":"object","default":{"a":1},` + open + `}}}`
	wrong = strings.Replace(wrong, `,"x-kubernetes-preserve-unknown-fields":true`, `,"properties":{"b":{"type":"string"}}`, 1)
	if errs := Check(field.NewPath("s"), propsOf(t, wrong)); len(errs) == 0 {
		t.Error("an unknown field beside the metadata is taken")
	}
}

// TestEmbedded: an embedded object has the version, kind and metadata of an
// object.
func TestEmbedded(t *testing.T) {
	s, err := Compile(propsOf(t,
		`{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version, kind, want string
	}{
		{"a/v1", "A", ""},
		{"a/b/c", "A", `e.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`},
		{"", "A", `e.apiVersion: Invalid value: "": must not be empty`},
		{"v1", "a b", "e.kind: Invalid value"},
	} {
		errs := s.ValidateEmbedded(nil, map[string]any{"e": map[string]any{"apiVersion": c.version, "kind": c.kind}}, true)
		if got := fmt.Sprint(errs.ToAggregate()); (len(errs) == 0) != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q %q: %s, want %s", c.version, c.kind, got, c.want)
		}
	}
}
