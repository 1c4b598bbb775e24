package openapi

import (
	"encoding/json"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keywords by which a schema means more than OpenAPI does.
const (
	extensionPreserve   = "x-kubernetes-preserve-unknown-fields"
	extensionEmbedded   = "x-kubernetes-embedded-resource"
	extensionMixed      = "x-kubernetes-int-or-string"
	extensionSelectable = "x-kubernetes-selectable-fields"
)

// renderCustom is the schema of a custom resource in one OpenAPI version. Version 2 can express
// less; what it can't express is left out. Without a schema, and where clients of v2 would
// take what is not described for not allowed, it is any object.
func renderCustom(props *apiextensionsv1.JSONSchemaProps, v version, meta string) map[string]any {
	if props == nil || v == v2 && props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields {
		return map[string]any{"type": "object"}
	}
	out := renderProps(props, v)
	doc := metav1.TypeMeta{}.SwaggerDoc()
	addObjectFields(out, v, meta, doc["apiVersion"], doc["kind"])
	eachSubschema(out, func(s map[string]any) { describeEmbedded(s, v, meta) })
	return out
}

// describeEmbedded adds the fields of every object to the objects within others, at any depth.
func describeEmbedded(s map[string]any, v version, meta string) {
	eachSubschema(s, func(inner map[string]any) { describeEmbedded(inner, v, meta) })
	if s[extensionEmbedded] != true || v == v2 && s[extensionPreserve] == true {
		return
	}
	addObjectFields(s, v, meta,
		"apiVersion defines the versioned schema of this representation of an object. More info: "+conventions+"#resources",
		"kind is a string value representing the type of this object. In CamelCase. More info: "+conventions+"#types-kinds")
	required, _ := s["required"].([]any)
	for _, field := range []any{"kind", "apiVersion"} {
		if !slices.Contains(required, field) {
			required = append(required, field)
		}
	}
	s["required"] = required
}

// addObjectFields describes the fields that every object has, in place of what the schema says
// of them.
func addObjectFields(s map[string]any, v version, meta, apiVersion, kind string) {
	properties, _ := s["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		s["properties"] = properties
	}
	properties["apiVersion"] = map[string]any{"type": "string", "description": apiVersion}
	properties["kind"] = map[string]any{"type": "string", "description": kind}
	reference := map[string]any{"$ref": meta}
	if v == v3 {
		reference = map[string]any{"allOf": []any{reference}}
	}
	reference["description"] = "Standard object's metadata. More info: " + conventions + "#metadata"
	properties["metadata"] = reference
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
var onlyV3 = []string{"oneOf", "anyOf", "allOf", "not", "nullable", "default"}

// simplifyForV2 reduces a schema to what v2 can express, or to nothing if that would be wrong:
// clients of v2 refuse null where there is a type or a required field, and fields that are not
// described.
func simplifyForV2(s map[string]any) {
	preserve, nullable := s[extensionPreserve] == true, s["nullable"] == true
	for _, word := range onlyV3 {
		delete(s, word)
	}
	if preserve || nullable {
		delete(s, "properties")
		delete(s, "items")
	}
	if nullable || preserve && s["type"] == "object" || s["type"] == "array" && s["items"] == nil {
		delete(s, "type")
	}
	dropNullableRequired(s)
	eachSubschema(s, simplifyForV2)
}

// dropNullableRequired takes the fields that may be null from the required ones.
func dropNullableRequired(s map[string]any) {
	nullable := func(of any) bool {
		inner, _ := of.(map[string]any)
		return inner["nullable"] == true
	}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	required = slices.DeleteFunc(required, func(field any) bool {
		name, _ := field.(string)
		return nullable(properties[name])
	})
	if len(required) == 0 || nullable(s["additionalProperties"]) {
		delete(s, "required")
		return
	}
	s["required"] = required
}

// integerOrString is what int-or-string means.
var integerOrString = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// expandIntOrString adds the meaning of int-or-string where the schema does not say it itself,
// beside what else it says.
func expandIntOrString(s map[string]any) {
	if s[extensionMixed] == true && !saysIntOrString(s) {
		if s["anyOf"] == nil {
			s["anyOf"] = integerOrString
		} else {
			all, _ := s["allOf"].([]any)
			s["allOf"] = append([]any{map[string]any{"anyOf": integerOrString}}, all...)
		}
	}
	eachSubschema(s, expandIntOrString)
}

// saysIntOrString reports whether a schema says what int-or-string means, in one of the two ways
// that definitions may.
func saysIntOrString(s map[string]any) bool {
	if all, _ := s["allOf"].([]any); len(all) > 0 {
		if first, _ := all[0].(map[string]any); reflect.DeepEqual(first["anyOf"], integerOrString) {
			return true
		}
	}
	return reflect.DeepEqual(s["anyOf"], integerOrString)
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
