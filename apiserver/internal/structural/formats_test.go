package structural

import (
	"slices"
	"testing"
)

// TestUnknownFormats: as kube-apiserver v1.37.0 warns of them.
func TestUnknownFormats(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"type":"object","properties":{"a":{"type":"integer","format":"int32"},"b":{"type":"number","format":"double"},"c":{"type":"string","format":"date-time"},"d":{"type":"string","format":"k8s-short-name"}}}`: nil,
		`{"type":"object","properties":{"a":{"type":"integer","format":"float"},"b":{"type":"number","format":"int64"},"c":{"type":"string","format":"int32"},"d":{"type":"boolean","format":"x"}}}`:                  {"float", "int64", "int32", "x"},
		`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string","format":"foo"}},"anyOf":[{"format":"foo"},{"format":"IPv4"}]}`:                                                             {"foo", "IPv4"},
		`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"format":"y"}}}`:                                                                                                                       {"y"},
	} {
		if got := UnknownFormats(propsOf(t, schema)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
}
