package structural

import (
	"fmt"
	"strings"
	"testing"
)

// As kube-apiserver 1.37 answers for the same schemas and values.
func TestTheClosestAlternativeIsReported(t *testing.T) {
	address := `{"type":"object","properties":{"type":{"type":"string","default":"IPAddress"},"value":{"type":"string"}},"oneOf":[
		{"properties":{"type":{"enum":["IPAddress"]},"value":{"anyOf":[{"format":"ipv4"},{"format":"ipv6"}]}}},
		{"properties":{"type":{"not":{"enum":["IPAddress"]}}}}]}`
	parts := `{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}},"n":{"type":"integer"},"port":{"x-kubernetes-int-or-string":true}},"anyOf":[
		{"required":["x"]},
		{"properties":{"list":{"minItems":3,"items":{"maximum":1}},"n":{"minimum":5}}},
		{"properties":{"port":{"pattern":"^y"}}}]}`
	const (
		none     = `<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid`
		noneAny  = `<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)`
		valueAny = `<nil>: Invalid value: "": "spec.value" must validate at least one schema (anyOf)`
	)
	for _, c := range []struct{ schema, value, want string }{
		{address, `{"type":"IPAddress","value":"1.2.3.4"}`, "<nil>"},
		{address, `{"type":"Hostname","value":"a.b"}`, "<nil>"},
		{address, `{"type":"IPAddress","value":"a.b"}`,
			`[` + none + `, ` + valueAny + `, spec.value: Invalid value: "a.b": spec.value in body must be of type ipv4: "a.b"]`},
		// A format is a type for all but texts, also where a schema has no other.
		{address, `{"type":"IPAddress","value":5}`,
			`[` + none + `, ` + valueAny + `, spec.value: Invalid value: "int64": spec.value in body must be of type ipv4: "int64", ` +
				`spec.value: Invalid value: "integer": spec.value in body must be of type string: "integer"]`},
		{parts, `{"port":"x"}`, "<nil>"},
		{parts, `{"n":1,"port":"x"}`, `[` + noneAny + `, spec.n: Invalid value: 1: spec.n in body should be greater than or equal to 5]`},
		// Three errors, and yet the most in common.
		{parts, `{"list":[2],"n":1,"port":"x"}`, `[` + noneAny + `, spec.list: Invalid value: 1: spec.list in body should have at least 3 items, ` +
			`spec.list[0]: Invalid value: 2: spec.list[0] in body should be less than or equal to 1, spec.n: Invalid value: 1: spec.n in body should be greater than or equal to 5]`},
	} {
		t.Run(c.value, func(t *testing.T) {
			s, err := Compile(propsOf(t, `{"type":"object","properties":{"spec":`+c.schema+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			value := object(t, `{"spec":`+c.value+`}`)
			if got := fmt.Sprint(s.Validate(nil, value, nil, false).ToAggregate()); got != c.want {
				t.Errorf("got:  %s\nwant: %s", got, c.want)
			}
		})
	}
}

// Two schemas of the same value find the same error.
func TestAnErrorIsReportedOnce(t *testing.T) {
	s, err := Compile(propsOf(t, `{"type":"object","properties":{"a":{"type":"string","allOf":[{"minLength":3},{"minLength":3}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	errs := s.Validate(nil, object(t, `{"a":"x"}`), nil, false)
	if len(errs) != 2 {
		t.Errorf("want one error of the value and one of its allOf, got %d: %v", len(errs), errs)
	}
}

// What a value has in common with alternatives is counted as they are validated: a second walk for
// each level would double the work with each, and this would not end.
func TestNestedAlternativesAreValidatedOnce(t *testing.T) {
	const levels = 64
	for _, kind := range []string{"anyOf", "oneOf", "allOf"} {
		schema := `{"type":"string",` + strings.Repeat(`"`+kind+`":[{`, levels) + `"pattern":"^y"` + strings.Repeat(`}]`, levels) + `}`
		s, err := Compile(propsOf(t, schema))
		if err != nil {
			t.Fatal(err)
		}
		if errs := s.Validate(nil, "y", nil, false); len(errs) != 0 {
			t.Errorf("%s: %v", kind, errs)
		}
		if errs := s.Validate(nil, "x", nil, false); len(errs) != 2 {
			t.Errorf("%s: want the error and that nothing matches, got %v", kind, errs)
		}
	}
}
