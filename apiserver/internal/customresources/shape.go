package customresources

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/shape"
	"kctl/apiserver/internal/structural"
)

// shapeOf is how the objects of a schema are merged (Kubernetes docs,
// "Server-Side Apply", "Custom resources"): lists as a whole and maps entry by
// entry, unless the schema says otherwise.
func shapeOf(s *structural.Schema) *shape.Shape {
	out := &shape.Shape{Kind: shape.Struct, Element: shape.Anything}
	if s != nil {
		out = objectShape(s, false, true)
		out.Kind = shape.Struct
	}
	return withMeta(out)
}

// withMeta adds the fields that every object has.
func withMeta(s *shape.Shape) *shape.Shape {
	if s.Fields == nil {
		s.Fields = map[string]*shape.Shape{}
	}
	s.Fields["apiVersion"], s.Fields["kind"] = text, text
	s.Fields["metadata"] = shape.Of(reflect.TypeFor[*metav1.PartialObjectMetadata]()).Fields["metadata"]
	return s
}

var text = &shape.Shape{Type: "string"}

// valueShape is the shape of a value. Below a schema that preserves unknown
// fields (preserve) they may be anywhere, whatever is pruned afterwards.
func valueShape(s *structural.Schema, preserve bool) *shape.Shape {
	props := s.Props()
	preserve = preserve || props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
	switch {
	case props.Type == "object":
		out := objectShape(s, preserve, props.XEmbeddedResource)
		if props.XEmbeddedResource {
			out = withMeta(out)
		}
		return out
	case props.Type == "array":
		return listShape(s, preserve)
	case props.Type == "string":
		return text
	case props.Type == "boolean":
		return &shape.Shape{Type: "boolean"}
	case props.Type == "integer", props.Type == "number":
		return &shape.Shape{Type: "numeric"}
	}
	return shape.Anything // also for x-kubernetes-int-or-string: the schema refuses what is neither
}

// objectShape returns the shape of an object; a whole one has more fields than
// those of its schema. Any other object without properties accepts any field
// (OpenAPI), even if it is pruned later.
func objectShape(s *structural.Schema, preserve, whole bool) *shape.Shape {
	out := &shape.Shape{Kind: shape.Map}
	props := s.Props()
	preserve = preserve || props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
	if all := s.Properties(); len(all) > 0 {
		out.Kind, out.Fields = shape.Struct, make(map[string]*shape.Shape, len(all))
		for name, property := range all {
			out.Fields[name] = valueShape(property, preserve)
		}
	}
	values, any := s.Values()
	switch {
	case values != nil:
		out.Element = valueShape(values, preserve)
	case any, preserve, out.Kind == shape.Map && !whole:
		out.Element = shape.Anything
	case out.Kind == shape.Map:
		out.Kind = shape.Struct // of nothing
	}
	if props.XMapType != nil && *props.XMapType == "atomic" {
		out.Kind = shape.AtomicMap
	}
	return out
}

func listShape(s *structural.Schema, preserve bool) *shape.Shape {
	out := &shape.Shape{Kind: shape.AtomicList, Element: shape.Anything}
	items := s.Items()
	if items != nil {
		out.Element = valueShape(items, preserve)
	}
	props := s.Props()
	if props.XListType == nil {
		return out
	}
	switch *props.XListType {
	case "set":
		out.Kind = shape.Set
	case "map":
		out.Kind = shape.Keyed
		for _, name := range props.XListMapKeys {
			key := shape.Key{Name: name}
			if items != nil {
				key.Default, _ = items.Property(name).Fallback()
			}
			out.Keys = append(out.Keys, key)
		}
	}
	return out
}
