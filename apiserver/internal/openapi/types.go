package openapi

import (
	"reflect"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/mergeschema"
)

// Formats that stand for more than one JSON type. quantity is internal: no
// document shows it.
const (
	intOrString = "int-or-string"
	quantity    = "quantity"
)

// Extensions that tell clients how to merge lists, and which kind a definition
// is the type of.
const (
	extensionKinds         = "x-kubernetes-group-version-kind"
	extensionPatchStrategy = "x-kubernetes-patch-strategy"
	extensionPatchMergeKey = "x-kubernetes-patch-merge-key"
	extensionAction        = "x-kubernetes-action"
	extensionListType      = "x-kubernetes-list-type"
	extensionListKeys      = "x-kubernetes-list-map-keys"
	extensionMapType       = "x-kubernetes-map-type"
	extensionUnions        = "x-kubernetes-unions"
)

// definitions are the named types, by the names upstream gives them.
type definitions map[string]*schema

type named interface{ OpenAPIModelName() string }

type documented interface{ SwaggerDoc() map[string]string }

// leaf types have a JSON encoding of their own.
type leaf interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// define defines t and everything it needs, and returns its name.
func (d definitions) define(t reflect.Type) string {
	name := modelName(t)
	if _, known := d[name]; known {
		return name
	}
	s := &schema{}
	d[name] = s // before its fields: types may contain themselves
	value := reflect.New(t).Interface()
	var doc map[string]string
	if documented, ok := value.(documented); ok {
		doc = documented.SwaggerDoc()
	}
	s.description = doc[""]
	if l, ok := value.(leaf); ok {
		s.format = l.OpenAPISchemaFormat()
		if kinds := l.OpenAPISchemaType(); len(kinds) > 0 { // else anything
			s.kind = kinds[0]
		}
		if name == "io.k8s.apimachinery.pkg.api.resource.Quantity" {
			s.format = quantity
		}
		return name
	}
	s.kind = "object"
	if of := mergeschema.Of(t); of.Kind == mergeschema.AtomicMap {
		s.extend(extensionMapType, "atomic")
	}
	if u, ok := unions[shortName(name)]; ok {
		s.extend(extensionUnions, u.extension())
	}
	d.addFields(s, t, doc, shortName(name))
	return name
}

// shortName is a definition's name without its location: "core.v1.PodSpec".
func shortName(name string) string {
	parts := strings.Split(name, ".")
	return strings.Join(parts[max(len(parts)-3, 0):], ".")
}

// addFields adds the JSON fields of a struct to s, including those of embedded
// structs. in is the short name of the definition.
func (d definitions) addFields(s *schema, t reflect.Type, doc map[string]string, in string) {
	merges := mergeschema.Of(t).Fields
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
			continue
		case tag == "" && f.Anonymous || strings.Contains(options, "inline"):
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			inner := doc
			if documented, ok := reflect.New(embedded).Interface().(documented); ok {
				inner = documented.SwaggerDoc()
			}
			d.addFields(s, embedded, inner, in)
			continue
		case tag == "":
			continue
		}
		name, always := in+"."+tag, !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero")
		property := d.schemaOf(f.Type)
		property.description, property.enum = doc[tag], enumsByField[name]
		property.defaultValue = zeroDefault(name, f.Type, always)
		if tag != "items" || !strings.HasSuffix(in, "List") { // lists of objects are not merged
			property.setMergeStrategy(f, merges[tag])
		}
		if s.properties == nil {
			s.properties = map[string]*schema{}
		}
		s.properties[tag] = property
		if (always && !optionalFields[name] || requiredFields[name]) && !slices.Contains(s.required, tag) {
			s.required = append(s.required, tag)
		}
	}
}

// zeroDefault is the default of an omitted field, as far as its type determines it;
// always: the server always sends it.
func zeroDefault(name string, t reflect.Type, always bool) any {
	if value, ok := publishedDefaults[name]; ok {
		return value
	}
	switch t.Kind() {
	case reflect.Struct:
		if _, ok := reflect.New(t).Interface().(leaf); !ok {
			return map[string]any{}
		}
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Int:
		if always {
			return reflect.Zero(t).Interface()
		}
	}
	return nil
}

// setMergeStrategy adds to a field's schema how its values are merged.
func (s *schema) setMergeStrategy(f reflect.StructField, how *mergeschema.Schema) {
	for key, extension := range map[string]string{"patchStrategy": extensionPatchStrategy, "patchMergeKey": extensionPatchMergeKey} {
		if value := f.Tag.Get(key); value != "" {
			s.extend(extension, value)
		}
	}
	if how == nil {
		return
	}
	switch {
	case s.kind == "array" && how.Kind == mergeschema.AtomicList:
		s.extend(extensionListType, "atomic")
	case s.kind == "array" && how.Kind == mergeschema.ListSet:
		s.extend(extensionListType, "set")
	case s.kind == "array" && how.Kind == mergeschema.ListMap:
		keys := make([]any, len(how.Keys))
		for i, key := range how.Keys {
			keys[i] = key.Name
		}
		s.extend(extensionListType, "map")
		s.extend(extensionListKeys, keys)
	case s.kind == "object" && how.Kind == mergeschema.AtomicMap:
		s.extend(extensionMapType, "atomic")
	case s.ref != "" && how.Kind == mergeschema.Struct && how.Name == "": // its type is atomic elsewhere
		s.extend(extensionMapType, "granular")
	}
}

// schemaOf is the schema of a field's type.
func (d definitions) schemaOf(t reflect.Type) *schema {
	switch t.Kind() {
	case reflect.Pointer:
		return d.schemaOf(t.Elem())
	case reflect.Struct:
		return &schema{ref: d.define(t)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{kind: "string", format: "byte"}
		}
		return &schema{kind: "array", items: d.schemaOf(t.Elem())}
	case reflect.Map:
		return &schema{kind: "object", values: d.schemaOf(t.Elem())}
	case reflect.String:
		return &schema{kind: "string"}
	case reflect.Bool:
		return &schema{kind: "boolean"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Uint16:
		return &schema{kind: "integer", format: "int32"}
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return &schema{kind: "integer", format: "int64"}
	case reflect.Float32, reflect.Float64:
		return &schema{kind: "number", format: "double"}
	}
	return &schema{} // an interface: anything
}

// addKind records that a definition is the type of kind.
func (d definitions) addKind(name string, kind runtimeschema.GroupVersionKind) {
	s := d[name]
	kinds, _ := s.extensions[extensionKinds].([]any)
	entry := kindEntry(kind)
	for _, k := range kinds {
		if reflect.DeepEqual(k, entry) {
			return
		}
	}
	s.extend(extensionKinds, append(kinds, entry))
}

func kindEntry(kind runtimeschema.GroupVersionKind) any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

// modelName is the name of t in upstream's documents.
func modelName(t reflect.Type) string {
	if n, ok := reflect.New(t).Interface().(named); ok {
		return n.OpenAPIModelName()
	}
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	slices.Reverse(host)
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}
