package customresources

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestNullsArePreserved: a definition of an old cluster that preserves unknown fields drops no nulls, neither of
// what is sent nor of what is stored. One that is not allowed is refused.
func TestNullsArePreserved(t *testing.T) {
	const text = `{"apiVersion":"c.io/v1","kind":"C","metadata":{"generation":1,"name":"c"},"spec":{"a":null,"b":null}}`
	for preserves, want := range map[bool]string{
		true:  text,
		false: `{"apiVersion":"c.io/v1","kind":"C","metadata":{"generation":1,"name":"c"},"spec":{}}`,
	} {
		f := newTestVersion(t, preserves, apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string"}}},
		}})
		c := &converter{versions: map[string]*compiledVersion{f.apiVersion(): f}}
		if got := c.normalizeStored([]byte(text)); string(got) != want {
			t.Errorf("preserves %v: stored: %s", preserves, got)
		}
		sent, _, err := f.decodeBody([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := marshal(sent); err != nil || string(got) != want {
			t.Errorf("preserves %v: sent: %s, %v", preserves, got, err)
		}
		if errs := f.validate(sent, nil); (len(errs) > 0) != preserves {
			t.Errorf("preserves %v: %v", preserves, errs)
		}
	}
}

// TestSchemasThatAreNotForClients: by a schema that is not structural, or has types that there are not, as an old
// cluster may have stored, nothing is merged, and clients are not told of it.
func TestSchemasThatAreNotForClients(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}`:                                       true,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{}}}}}`:                                                      false,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"int"}}}}}`:                                          false,
		`{"type":"object","properties":{"spec":{"type":"array","items":{"type":"int"}}}}`:                                                      false,
		`{"type":"object","properties":{"spec":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"text"}]}]}}}`: false,
	} {
		var props apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(text), &props); err != nil {
			t.Fatal(err)
		}
		if got := published(&props, false) != nil; got != want {
			t.Errorf("%s: published: %v", text, got)
		}
		if got := newTestVersion(t, false, props).mergeSchema().Fields["spec"] != nil; got != want {
			t.Errorf("%s: merged by it: %v", text, got)
		}
	}
}

func newTestVersion(t *testing.T, preserves bool, props apiextensionsv1.JSONSchemaProps) *compiledVersion {
	t.Helper()
	d := &definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "c.io", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "C"}, PreserveUnknownFields: preserves,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}}},
	}}
	f, err := compileVersion(d, &d.Spec.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	return f
}
