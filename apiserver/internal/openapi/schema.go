package openapi

import (
	"maps"
	"sort"
	"strconv"
	"strings"
)

// schema is a type, independent of the OpenAPI version.
type schema struct {
	ref         string // name of a definition; then only description may be set
	kind        string // object, array, string, integer, number, boolean, or "" for anything
	format      string
	description string
	properties  map[string]*schema
	required    []string
	items       *schema
	values      *schema // of a map
	// enum are the only possible values; for a list or a map, those of its elements.
	enum []string
	// defaultValue is the default; only v3 has it.
	defaultValue any
	extensions   map[string]any
	// custom renders a custom resource's schema, which refers to customRefs.
	custom     func(v version) map[string]any
	customRefs []string
}

// version is an OpenAPI version.
type version int

const (
	v2 version = 2
	v3 version = 3
)

func (v version) ref(name string) string {
	if v == v2 {
		return "#/definitions/" + name
	}
	return "#/components/schemas/" + name
}

func (s *schema) extend(extension string, value any) {
	if s.extensions == nil {
		s.extensions = map[string]any{}
	}
	s.extensions[extension] = value
}

// render is the schema in one version.
func (s *schema) render(v version) map[string]any {
	out := map[string]any{}
	if s.custom != nil {
		out = s.custom(v)
	}
	if s.description != "" {
		out["description"] = s.description + enumText(s.enum)
	}
	if s.defaultValue != nil && v == v3 {
		out["default"] = s.defaultValue
	}
	s.renderType(v, out)
	if len(s.properties) > 0 {
		properties := make(map[string]any, len(s.properties))
		for name, property := range s.properties {
			properties[name] = property.render(v)
		}
		out["properties"] = properties
	}
	if len(s.required) > 0 {
		sort.Strings(s.required)
		out["required"] = s.required
	}
	if s.items != nil {
		out["items"] = s.items.render(v)
	}
	if s.values != nil {
		out["additionalProperties"] = s.values.render(v)
	}
	maps.Copy(out, s.extensions)
	s.renderEnum(out)
	return out
}

// renderType writes the type of the schema's values.
func (s *schema) renderType(v version, out map[string]any) {
	switch {
	case s.ref != "" && v == v2:
		out["$ref"] = v.ref(s.ref)
	case s.ref != "" && (s.description != "" || s.defaultValue != nil):
		// In v3, a reference may have no siblings.
		out["allOf"] = []any{map[string]any{"$ref": v.ref(s.ref)}}
	case s.ref != "":
		out["$ref"] = v.ref(s.ref)
	case s.format == intOrString && v == v3:
		out["oneOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	case s.format == quantity && v == v3:
		out["oneOf"] = []any{map[string]any{"type": "string"}, map[string]any{"type": "number"}}
	case s.kind != "":
		out["type"] = s.kind
	}
	if s.format != "" && s.format != quantity {
		out["format"] = s.format
	}
}

// renderEnum writes the possible values; for a list or a map, to the schema of
// its elements, which out already has.
func (s *schema) renderEnum(out map[string]any) {
	if len(s.enum) == 0 {
		return
	}
	of := out
	for _, elements := range []string{"items", "additionalProperties"} {
		if inner, ok := out[elements].(map[string]any); ok {
			of = inner
		}
	}
	values := make([]any, len(s.enum))
	for i, value := range s.enum {
		values[i] = value
	}
	of["enum"] = values
}

// enumText names the values for people, as upstream's descriptions do.
func enumText(values []string) string {
	if len(values) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("\n\nPossible enum values:")
	for _, value := range values {
		out.WriteString("\n - `" + strconv.Quote(value) + "`")
	}
	return out.String()
}

// references calls found with the name of every definition that s refers to.
func (s *schema) references(found func(name string)) {
	if s == nil {
		return
	}
	if s.ref != "" {
		found(s.ref)
	}
	for _, name := range s.customRefs {
		found(name)
	}
	for _, property := range s.properties {
		property.references(found)
	}
	s.items.references(found)
	s.values.references(found)
}
