package customresources

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/customresources/structural"
	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// linkFields has each version understand who owns fields in the others.
func (c *converter) linkFields(resources map[string]registry.Served) {
	names := slices.Sorted(maps.Keys(resources))
	for i, one := range names {
		for _, another := range names[i+1:] {
			a, b := resources[one].Resource.Info(), resources[another].Resource.Info()
			a.FieldTracker.Link(b.FieldTracker, c.into(b.GVK().GroupVersion()), c.into(a.GVK().GroupVersion()))
		}
	}
}

// into converts objects into a version. Fields that this one lacks are kept, where a webhook keeps
// them, too: they come back with the object.
func (c *converter) into(version schema.GroupVersion) managedfields.Convert {
	to := c.versions[version.String()]
	return func(in core.Object) (core.Object, error) {
		o, ok := in.(*object)
		if !ok {
			return nil, fmt.Errorf("convert a %T", in)
		}
		if c.webhook == nil {
			return o.DeepCopy(), nil
		}
		all, err := c.convertTidied(c.ctx, to, []*object{o}, to.dropNulls)
		if err != nil {
			return nil, err
		}
		return all[0], nil
	}
}

// mergeSchema is that of a version's objects. A schema that clients are not told of counts for nothing.
func (f *compiledVersion) mergeSchema() *mergeschema.Schema {
	if f.publishable {
		return mergeSchemaOf(f.schema, f.preserves)
	}
	return mergeSchemaOf(nil, f.preserves)
}

// mergeSchemaOf is how the objects of a schema are merged (Kubernetes docs,
// "Server-Side Apply", "Custom resources"): lists as a whole and maps entry by
// entry, unless the schema says otherwise. preserve: unknown fields may be anywhere.
func mergeSchemaOf(s *structural.Schema, preserve bool) *mergeschema.Schema {
	out := &mergeschema.Schema{Kind: mergeschema.Struct, Element: mergeschema.Anything}
	if s != nil {
		out = objectSchema(s, preserve, true)
		out.Kind = mergeschema.Struct
	}
	return withMeta(out)
}

// withMeta adds the fields that every object has.
func withMeta(s *mergeschema.Schema) *mergeschema.Schema {
	if s.Fields == nil {
		s.Fields = map[string]*mergeschema.Schema{}
	}
	s.Fields["apiVersion"], s.Fields["kind"] = text, text
	s.Fields["metadata"] = mergeschema.Of(reflect.TypeFor[*metav1.PartialObjectMetadata]()).Fields["metadata"]
	return s
}

var text = &mergeschema.Schema{Type: "string"}

// formatted is a text with a format. As for upstream, numbers are no fault of the patch, but of the
// object: the validation refuses them, and says which format it wanted.
var formatted = &mergeschema.Schema{}

// valueSchema is the schema of a value. Below a schema that preserves unknown
// fields (preserve) they may be anywhere, whatever is pruned afterwards.
func valueSchema(s *structural.Schema, preserve bool) *mergeschema.Schema {
	props := s.Props()
	preserve = preserve || ptr.Deref(props.XPreserveUnknownFields, false)
	switch {
	case props.Type == "object":
		out := objectSchema(s, preserve, props.XEmbeddedResource)
		if props.XEmbeddedResource {
			out = withMeta(out)
		}
		return out
	case props.Type == "array":
		return listSchema(s, preserve)
	case props.Type == "string" && props.Format != "" && props.Format != "byte":
		return formatted
	case props.Type == "string":
		return text
	case props.Type == "boolean":
		return &mergeschema.Schema{Type: "boolean"}
	case props.Type == "integer", props.Type == "number":
		return &mergeschema.Schema{Type: "numeric"}
	}
	return mergeschema.Anything // also for x-kubernetes-int-or-string: the schema refuses what is neither
}

// objectSchema returns the schema of an object; a whole one has more fields than
// those of its schema. Any other object without properties accepts any field
// (OpenAPI), even if it is pruned later.
func objectSchema(s *structural.Schema, preserve, whole bool) *mergeschema.Schema {
	out := &mergeschema.Schema{Kind: mergeschema.Map}
	props := s.Props()
	preserve = preserve || ptr.Deref(props.XPreserveUnknownFields, false)
	if all := s.Properties(); len(all) > 0 {
		out.Kind, out.Fields = mergeschema.Struct, make(map[string]*mergeschema.Schema, len(all))
		for name, property := range all {
			out.Fields[name] = valueSchema(property, preserve)
		}
	}
	values, open := s.Values()
	switch {
	case values != nil:
		out.Element = valueSchema(values, preserve)
	case open, preserve, out.Kind == mergeschema.Map && !whole:
		out.Element = mergeschema.Anything
	case out.Kind == mergeschema.Map:
		out.Kind = mergeschema.Struct // of nothing
	}
	if ptr.Deref(props.XMapType, "") == "atomic" {
		out.Kind = mergeschema.AtomicMap
	}
	return out
}

func listSchema(s *structural.Schema, preserve bool) *mergeschema.Schema {
	out := &mergeschema.Schema{Kind: mergeschema.AtomicList, Element: mergeschema.Anything}
	items := s.Items()
	if items != nil {
		out.Element = valueSchema(items, preserve)
	}
	props := s.Props()
	switch ptr.Deref(props.XListType, "") {
	case "set":
		out.Kind = mergeschema.ListSet
	case "map":
		out.Kind = mergeschema.ListMap
		for _, name := range props.XListMapKeys {
			key := mergeschema.Key{Name: name}
			if items != nil {
				key.Default, _ = items.Property(name).Fallback()
			}
			out.Keys = append(out.Keys, key)
		}
	}
	return out
}
