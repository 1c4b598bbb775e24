package openapi

import (
	"reflect"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Formats that mean more than one JSON type. quantity is only ours: no
// document shows it.
const (
	intOrString = "int-or-string"
	quantity    = "quantity"
)

// Extensions by which clients know how to merge lists and what a definition is
// the type of.
const (
	extensionKinds         = "x-kubernetes-group-version-kind"
	extensionPatchStrategy = "x-kubernetes-patch-strategy"
	extensionPatchMergeKey = "x-kubernetes-patch-merge-key"
	extensionAction        = "x-kubernetes-action"
)

// definitions are the named types, by the names upstream gives them.
type definitions map[string]*schema

type named interface{ OpenAPIModelName() string }

type documented interface{ SwaggerDoc() map[string]string }

// leaf types say by themselves what JSON they become.
type leaf interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// add defines t and all that it needs, and returns its name.
func (d definitions) add(t reflect.Type) string {
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
	d.fields(s, t, doc)
	return name
}

// fields puts the JSON fields of a struct into s, those of embedded structs
// included.
func (d definitions) fields(s *schema, t reflect.Type, doc map[string]string) {
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
			d.fields(s, embedded, inner)
			continue
		case tag == "":
			continue
		}
		property := d.of(f.Type)
		property.description = doc[tag]
		for key, extension := range map[string]string{"patchStrategy": extensionPatchStrategy, "patchMergeKey": extensionPatchMergeKey} {
			if value := f.Tag.Get(key); value != "" {
				if property.extensions == nil {
					property.extensions = map[string]any{}
				}
				property.extensions[extension] = value
			}
		}
		if s.properties == nil {
			s.properties = map[string]*schema{}
		}
		s.properties[tag] = property
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") && !slices.Contains(s.required, tag) {
			s.required = append(s.required, tag)
		}
	}
}

// of is the schema of a field's type.
func (d definitions) of(t reflect.Type) *schema {
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.Struct:
		return &schema{ref: d.add(t)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{kind: "string", format: "byte"}
		}
		return &schema{kind: "array", items: d.of(t.Elem())}
	case reflect.Map:
		return &schema{kind: "object", values: d.of(t.Elem())}
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

// mark notes that a definition is the type of kind.
func (d definitions) mark(name string, kind runtimeschema.GroupVersionKind) {
	s := d[name]
	if s.extensions == nil {
		s.extensions = map[string]any{}
	}
	kinds, _ := s.extensions[extensionKinds].([]any)
	entry := kindEntry(kind)
	for _, k := range kinds {
		if reflect.DeepEqual(k, entry) {
			return
		}
	}
	s.extensions[extensionKinds] = append(kinds, entry)
}

func kindEntry(kind runtimeschema.GroupVersionKind) any {
	return map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

// modelName is the name that upstream's documents have for t.
func modelName(t reflect.Type) string {
	if n, ok := reflect.New(t).Interface().(named); ok {
		return n.OpenAPIModelName()
	}
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	slices.Reverse(host)
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}
