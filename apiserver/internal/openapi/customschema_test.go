package openapi

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// thing is a custom resource with a schema in JSON.
func thing(t *testing.T, text string) Custom {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &props); err != nil {
		t.Fatal(err)
	}
	c := custom("example.com", "things", "Thing")
	c.Schema = func() *apiextensionsv1.JSONSchemaProps { return &props }
	return c
}

// wantJSON compares a part of a document.
func wantJSON(t *testing.T, of any, want string, path ...string) {
	t.Helper()
	if got, _ := json.Marshal(at(t, of, path...)); string(got) != want {
		t.Errorf("%v: %s\nwant %s", path, got, want)
	}
}

// TestEmbeddedResource: objects within objects have the fields of every object, in place of what
// the schema says of them. Clients of v2 would take other fields for unknown ones, and so get none
// where these are allowed.
func TestEmbeddedResource(t *testing.T) {
	c := thing(t, `{"type":"object","properties":{
		"open":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"list":{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,"required":["x","kind"],
			"properties":{"x":{"type":"string"},"kind":{"type":"string","pattern":"^x"},"metadata":{"type":"object"}}}},
		"map":{"type":"object","additionalProperties":{"type":"object","properties":{
			"deep":{"type":"object","x-kubernetes-embedded-resource":true,"nullable":true,"properties":{"x":{"type":"string"}}}}}}}}`)
	h := New(nil, nil, "v1", time.Now()).Follow(customs{c})
	const (
		version = `"apiVersion":{"description":"apiVersion defines the versioned schema of this representation of an object. More info: ` + conventions +
			`#resources","type":"string"}`
		kind = `"kind":{"description":"kind is a string value representing the type of this object. In CamelCase. More info: ` + conventions +
			`#types-kinds","type":"string"}`
		text  = `"description":"Standard object's metadata. More info: ` + conventions + `#metadata"`
		meta  = `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"`
		meta2 = `"metadata":{"$ref":"#/definitions/` + meta + `,` + text + `}`
		meta3 = `"metadata":{"allOf":[{"$ref":"#/components/schemas/` + meta + `}],` + text + `}`
	)
	second := at(t, decoded(t, get(t, h, "/openapi/v2")), "definitions", "com.example.v1.Thing", "properties")
	third := at(t, decoded(t, get(t, h, "/openapi/v3/apis/example.com/v1")), "components", "schemas", "com.example.v1.Thing", "properties")
	wantJSON(t, second, `{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, "open")
	wantJSON(t, third, `{`+version+`,`+kind+`,`+meta3+`}`, "open", "properties")
	wantJSON(t, third, `["kind","apiVersion"]`, "open", "required")
	wantJSON(t, third, `{`+version+`,`+kind+`,`+meta3+`,"x":{"type":"string"}}`, "list", "items", "properties")
	wantJSON(t, second, `["x","kind","apiVersion"]`, "list", "items", "required")
	wantJSON(t, second, `{"properties":{`+version+`,`+kind+`,`+meta2+`},"required":["kind","apiVersion"],"x-kubernetes-embedded-resource":true}`,
		"map", "additionalProperties", "properties", "deep")
}

// TestSchemaInV2: clients of v2 know no null, and refuse fields that are not described.
func TestSchemaInV2(t *testing.T) {
	c := thing(t, `{"type":"object","x-kubernetes-validations":[{"rule":"true"}],"properties":{
		"some":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string","default":"x"}}},
		"none":{"type":"object","required":["a"],"properties":{"a":{"type":"string","nullable":true}}},
		"map":{"type":"object","required":["a"],"additionalProperties":{"type":"string","nullable":true}},
		"any":{"type":"object","additionalProperties":true},
		"null":{"type":"object","nullable":true,"required":["a"],"properties":{"a":{"type":"string"}}},
		"list":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"string"}},
		"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}`)
	h := New(nil, nil, "v1", time.Now()).Follow(customs{c})
	thing := at(t, decoded(t, get(t, h, "/openapi/v2")), "definitions", "com.example.v1.Thing")
	wantJSON(t, thing, `[{"rule":"true"}]`, "x-kubernetes-validations")
	for field, want := range map[string]string{
		"some": `{"properties":{"a":{},"b":{"type":"string"}},"required":["b"],"type":"object"}`,
		"none": `{"properties":{"a":{}},"type":"object"}`,
		"map":  `{"additionalProperties":{},"type":"object"}`,
		"any":  `{"additionalProperties":true,"type":"object"}`,
		"null": `{"required":["a"]}`,
		"list": `{"x-kubernetes-preserve-unknown-fields":true}`,
		"port": `{"x-kubernetes-int-or-string":true}`,
	} {
		wantJSON(t, thing, want, "properties", field)
	}
}

// TestCustomListsAndScale: a list's type has the name of its kind, and the scale the one of all
// scales.
func TestCustomListsAndScale(t *testing.T) {
	c := custom("example.com", "things", "Thing")
	c.ListKind, c.Selectable, c.HasScale = "Things", []string{"spec.x"}, true
	doc := decoded(t, get(t, New(nil, nil, "v1", time.Now()).Follow(customs{c}), "/openapi/v3/apis/example.com/v1"))
	wantJSON(t, doc, `[{"fieldPath":"spec.x"}]`, "components", "schemas", "com.example.v1.Things", "x-kubernetes-selectable-fields")
	wantJSON(t, doc, `[{"fieldPath":"spec.x"}]`, "components", "schemas", "com.example.v1.Thing", "x-kubernetes-selectable-fields")
	wantJSON(t, doc, `{"$ref":"#/components/schemas/io.k8s.api.autoscaling.v1.Scale"}`,
		"paths", "/apis/example.com/v1/namespaces/{namespace}/things/{name}/scale", "put", "requestBody", "content", "*/*", "schema")
}

// TestIntOrString: what int-or-string means is said beside what else a schema demands, and not
// twice.
func TestIntOrString(t *testing.T) {
	const mixed, meaning = `"x-kubernetes-int-or-string":true`, `"anyOf":[{"type":"integer"},{"type":"string"}]`
	schemas := map[string]struct{ given, want string }{
		"bare":    {`{` + mixed + `}`, `{` + meaning + `,` + mixed + `}`},
		"said":    {`{` + mixed + `,` + meaning + `}`, `{` + meaning + `,` + mixed + `}`},
		"wrapped": {`{` + mixed + `,"allOf":[{` + meaning + `},{"pattern":"x"}]}`, `{"allOf":[{` + meaning + `},{"pattern":"x"}],` + mixed + `}`},
		"all":     {`{` + mixed + `,"allOf":[{"pattern":"x"}]}`, `{"allOf":[{"pattern":"x"}],` + meaning + `,` + mixed + `}`},
		"any":     {`{` + mixed + `,"anyOf":[{"pattern":"x"}]}`, `{"allOf":[{` + meaning + `}],"anyOf":[{"pattern":"x"}],` + mixed + `}`},
		"both": {`{` + mixed + `,"anyOf":[{"pattern":"x"}],"allOf":[{"pattern":"y"}]}`,
			`{"allOf":[{` + meaning + `},{"pattern":"y"}],"anyOf":[{"pattern":"x"}],` + mixed + `}`},
	}
	var properties []string
	for name, s := range schemas {
		properties = append(properties, `"`+name+`":`+s.given)
	}
	c := thing(t, `{"type":"object","properties":{`+strings.Join(properties, ",")+`}}`)
	doc := decoded(t, get(t, New(nil, nil, "v1", time.Now()).Follow(customs{c}), "/openapi/v3/apis/example.com/v1"))
	for name, s := range schemas {
		wantJSON(t, doc, s.want, "components", "schemas", "com.example.v1.Thing", "properties", name)
	}
}
