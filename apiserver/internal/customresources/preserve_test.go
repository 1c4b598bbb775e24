package customresources

import (
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
