package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
)

// Custom is a custom resource, whose types are known only from its definition.
type Custom struct {
	registry.Info
	ListKind string
	// Selectable are the fields by which objects can be selected.
	Selectable []string
	// Schema reads the objects' schema; nil if there is none. Mark changes with
	// it.
	Schema func() *apiextensionsv1.JSONSchemaProps
	Mark   string
}

// Source knows the custom resources, and what other servers serve. As long as
// Changed returns the same value, so do the other methods.
type Source interface {
	Changed() any
	Customs() []Custom
	Remotes() []Remote
}

// conventions is the page that upstream's descriptions point to.
const conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

// describeCustom adds a custom resource's paths and types to its group.
func (g *group) describeCustom(c Custom, d definitions) {
	meta := d.define(reflect.TypeFor[metav1.ObjectMeta]())
	listMeta := d.define(reflect.TypeFor[metav1.ListMeta]())
	labels := strings.Split(c.Group, ".")
	slices.Reverse(labels)
	for _, shared := range []reflect.Type{reflect.TypeFor[metav1.DeleteOptions](), reflect.TypeFor[metav1.Status](), reflect.TypeFor[metav1.Patch](), reflect.TypeFor[metav1.WatchEvent]()} {
		d.define(shared) // before a name is free for others
	}
	name := strings.Join(append(labels, c.Version, c.Kind), ".")
	list := d.freeName(name + "List")
	name = d.freeName(name)
	d[name] = &schema{
		custom:     func(v version) map[string]any { return c.render(v, v.ref(meta)) },
		customRefs: []string{meta},
	}
	d.addKind(name, c.GVK())
	kind := c.GVK()
	kind.Kind = c.ListKind
	d[list] = &schema{
		kind: "object", description: c.ListKind + " is a list of " + c.Kind, required: []string{"items"},
		properties: map[string]*schema{
			"apiVersion": {kind: "string", description: metav1.TypeMeta{}.SwaggerDoc()["apiVersion"]},
			"kind":       {kind: "string", description: metav1.TypeMeta{}.SwaggerDoc()["kind"]},
			"metadata":   {ref: listMeta, description: "Standard list metadata. More info: " + conventions + "#types-kinds"},
			"items":      {kind: "array", description: "List of " + c.Name + ". More info: " + conventions, items: &schema{ref: name}},
		},
	}
	d.addKind(list, kind)
	b := builder{group: g, info: c.Info, definitions: d, object: &schema{ref: name}, listed: list, jsonOnly: true}
	b.addCollection()
	b.addObject("", true)
	if c.HasStatus {
		b.addObject("status", false)
	}
}

// freeName is a name that no other type has, made as upstream makes it.
func (d definitions) freeName(name string) string {
	free := name
	for i := 2; d[free] != nil; i++ {
		free = fmt.Sprintf("%s_v%d", name, i)
	}
	return free
}

// render is the schema with the fields by which objects can be selected.
func (c *Custom) render(v version, meta string) map[string]any {
	out := renderCustom(c.Schema(), v, meta)
	if len(c.Selectable) == 0 {
		return out
	}
	fields := make([]any, len(c.Selectable))
	for i, path := range c.Selectable {
		fields[i] = map[string]any{"fieldPath": path}
	}
	out["x-kubernetes-selectable-fields"] = fields
	return out
}

// renderCustom is the schema of a custom resource in one OpenAPI version.
// Version 2 can express less; what it can't express is left out.
func renderCustom(props *apiextensionsv1.JSONSchemaProps, v version, meta string) map[string]any {
	out := map[string]any{"type": "object"}
	if v == v2 && props != nil && props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields {
		return out // clients of v2 take what is not described for not allowed
	}
	if props != nil {
		out = renderProps(props, v)
	}
	properties, _ := out["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	doc := metav1.TypeMeta{}.SwaggerDoc()
	properties["apiVersion"] = map[string]any{"type": "string", "description": doc["apiVersion"]}
	properties["kind"] = map[string]any{"type": "string", "description": doc["kind"]}
	reference := map[string]any{"$ref": meta}
	if v == v3 {
		reference = map[string]any{"allOf": []any{reference}}
	}
	reference["description"] = "Standard object's metadata. More info: " + conventions + "#metadata"
	properties["metadata"] = reference
	out["properties"] = properties
	return out
}

// renderProps turns a schema into the tree from which documents are made.
func renderProps(props *apiextensionsv1.JSONSchemaProps, v version) map[string]any {
	text, err := json.Marshal(props)
	if err != nil { // it came from JSON
		return map[string]any{}
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return map[string]any{}
	}
	if v == v2 {
		simplifyForV2(out)
	} else {
		expandIntOrString(out)
	}
	return out
}

// onlyV3 are the keywords that v2 lacks.
var onlyV3 = []string{"oneOf", "anyOf", "allOf", "not", "nullable", "x-kubernetes-validations", "default"}

// simplifyForV2 reduces a schema to what v2 can express, or to nothing if that would
// be wrong.
func simplifyForV2(s map[string]any) {
	preserve, _ := s["x-kubernetes-preserve-unknown-fields"].(bool)
	nullable, _ := s["nullable"].(bool)
	mixed, _ := s["x-kubernetes-int-or-string"].(bool)
	for _, word := range onlyV3 {
		delete(s, word)
	}
	if preserve || nullable || mixed {
		for _, word := range []string{"type", "properties", "items", "additionalProperties", "required"} {
			delete(s, word)
		}
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if _, ok := s[word].(bool); ok {
			delete(s, word)
		}
	}
	eachSubschema(s, simplifyForV2)
}

// expandIntOrString replaces int-or-string by its meaning.
func expandIntOrString(s map[string]any) {
	if mixed, _ := s["x-kubernetes-int-or-string"].(bool); mixed && s["anyOf"] == nil && s["allOf"] == nil {
		s["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	}
	eachSubschema(s, expandIntOrString)
}

// eachSubschema calls f for the schemas of a value's parts.
func eachSubschema(s map[string]any, f func(map[string]any)) {
	properties, _ := s["properties"].(map[string]any)
	for _, property := range properties {
		if one, ok := property.(map[string]any); ok {
			f(one)
		}
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if one, ok := s[word].(map[string]any); ok {
			f(one)
		}
	}
}
