package customresources

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kube-apiserver answers an apply of a number in the place of a text with 500, but if the text has
// a format, with 422: then any scalar can be merged, and the validation refuses it.
func TestTextsWithAFormatAreMergedAsAnyScalar(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"string"}`:                      "string",
		`{"type":"string","format":"byte"}`:      "string",
		`{"type":"string","format":"ipv4"}`:      "",
		`{"type":"string","format":"date-time"}`: "",
		`{"type":"string","format":"unknown"}`:   "",
		`{"type":"integer","format":"int32"}`:    "numeric",
	} {
		var props apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(`{"type":"object","properties":{"a":`+text+`}}`), &props); err != nil {
			t.Fatal(err)
		}
		if got := newTestVersion(t, false, props).mergeSchema().Fields["a"]; got.Type != want {
			t.Errorf("%s: merged as %q, want %q", text, got.Type, want)
		}
	}
}
