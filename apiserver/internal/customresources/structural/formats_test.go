package structural

import (
	"slices"
	"testing"
)

// TestUnknownFormats: kube-apiserver v1.37.0's warnings about them.
func TestUnknownFormats(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"type":"object","properties":{"a":{"type":"integer","format":"int32"},"b":{"type":"number","format":"double"},"c":{"type":"string","format":"date-time"},"d":{"type":"string","format":"k8s-short-name"}}}`: nil,
		`{"type":"object","properties":{"a":{"type":"integer","format":"float"},"b":{"type":"number","format":"int64"},"c":{"type":"string","format":"int32"},"d":{"type":"boolean","format":"x"}}}`:                  {"float", "int64", "int32", "x"},
		`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string","format":"foo"}},"anyOf":[{"format":"foo"},{"format":"IPv4"}]}`:                                                             {"foo", "IPv4"},
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"format":"y"}}}`:                                                                                                                       {"y"},
		`{"type":"object","properties":{"a":{"type":"string","anyOf":[{"format":"ipv4"},{"format":"ipv6"}]}}}`:                                                                                                        nil,
	} {
		if got := UnknownFormats(propsOf(t, schema)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
}

// As in Gateway API's definitions: a schema in an anyOf has no type of its own.
func TestAFormatInAnAnyOfIsHeldAgainstText(t *testing.T) {
	s, err := Compile(propsOf(t, `{"type":"object","properties":{"ip":{"type":"string","anyOf":[{"format":"ipv4"},{"format":"ipv6"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for ip, good := range map[string]bool{"192.0.2.1": true, "2001:db8::1": true, "here": false} {
		if errs := s.Validate(nil, map[string]any{"ip": ip}, nil, false); (len(errs) == 0) != good {
			t.Errorf("%s: %v", ip, errs)
		}
	}
}

// In upstream's words: a value of another type than the format's is not of that
// format.
func TestOtherTypesThanThatOfAFormat(t *testing.T) {
	s, err := Compile(propsOf(t,
		`{"type":"object","properties":{"n":{"type":"integer","format":"int32"},"c":{"type":"string","format":"cidr"},"x":{"type":"string","format":"none"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, value := range map[string]map[string]any{
		`n: Invalid value: "": n in body must be of type int32: ""`:                {"n": map[string]any{}},
		`n: Invalid value: "string": n in body must be of type integer: "string"`:  {"n": "1"},
		`c: Invalid value: "int64": c in body must be of type cidr: "int64"`:       {"c": int64(1)},
		`x: Invalid value: "boolean": x in body must be of type string: "boolean"`: {"x": true},
	} {
		if got := s.Validate(nil, value, nil, false).ToAggregate(); got == nil || got.Error() != want {
			t.Errorf("%v: %v, want %s", value, got, want)
		}
	}
}
