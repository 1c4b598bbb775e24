package mergeschema

import (
	"reflect"
	"strings"
	"sync"
)

var (
	mu      sync.Mutex
	schemas = map[reflect.Type]*Schema{}
)

// Of is the schema of a Go type that is an API object, or a part of one. It is
// safe for concurrent use, and answers the same Schema every time.
func Of(t reflect.Type) *Schema {
	mu.Lock()
	defer mu.Unlock()
	return schemaOf(t)
}

// schemaTyped types have a JSON encoding of their own.
type schemaTyped interface{ OpenAPISchemaType() []string }

func schemaOf(t reflect.Type) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, known := schemas[t]; known {
		return s
	}
	if t.Kind() == reflect.Interface {
		return Anything
	}
	s := &Schema{}
	schemas[t] = s // before its parts: types may contain themselves
	switch t.Kind() {
	case reflect.Struct:
		s.describeStruct(t)
	case reflect.Map:
		s.Kind, s.Element = Map, schemaOf(t.Elem())
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			s.Type = "string"
			break
		}
		s.Kind, s.Element = AtomicList, schemaOf(t.Elem())
	case reflect.String:
		s.Type = "string"
	case reflect.Bool:
		s.Type = "boolean"
	default:
		s.Type = "numeric"
	}
	return s
}

func (s *Schema) describeStruct(t reflect.Type) {
	s.Name = modelName(t)
	if l, ok := reflect.New(t).Interface().(schemaTyped); ok {
		switch types := l.OpenAPISchemaType(); {
		case len(types) == 0: // it may be anything, objects included
			s.Name, s.Kind, s.Element = "", Deduced, Anything
			return
		case types[0] != "object":
			return
		}
	}
	if untypedTypes[s.Name] {
		s.Kind, s.Element = Map, Anything
		return
	}
	s.Kind, s.Fields = Struct, map[string]*Schema{}
	if isAtomicStruct(t) {
		s.Kind = AtomicMap
	}
	visitFields(t, func(in reflect.Type, field reflect.StructField, name string) {
		s.Fields[name] = fieldSchema(in, field, name)
	})
}

// visitFields visits the JSON fields of a struct, including those of embedded
// structs; in is the struct that has the field.
func visitFields(t reflect.Type, visit func(in reflect.Type, field reflect.StructField, name string)) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous || strings.Contains(options, "inline"):
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			visitFields(embedded, visit)
		case name != "":
			visit(t, field, name)
		}
	}
}

func fieldSchema(in reflect.Type, field reflect.StructField, name string) *Schema {
	if atomicFields[shortName(in)+"."+name] {
		return anyAtomic
	}
	inner := schemaOf(field.Type)
	merge := mergeRuleOf(in, field, name)
	if merge.Kind == inner.Kind {
		return inner
	}
	own := *inner
	own.Kind = merge.Kind
	for _, key := range merge.Keys {
		own.Keys = append(own.Keys, Key{Name: key, Default: keyDefault(elementType(field.Type), key)})
	}
	if own.Kind == Struct || own.Kind == AtomicMap {
		own.Name = "" // it differs from its type
	}
	return &own
}

func elementType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// keyDefault is the value of an omitted key: the API's documented default, or
// the empty value of a field that is always there.
func keyDefault(t reflect.Type, key string) any {
	if value, ok := keyDefaults[shortName(t)+"."+key]; ok {
		return value
	}
	var out any
	visitFields(t, func(_ reflect.Type, field reflect.StructField, name string) {
		if name != key || field.Type.Kind() == reflect.Pointer || strings.Contains(field.Tag.Get("json"), "omit") {
			return
		}
		switch field.Type.Kind() {
		case reflect.String:
			out = ""
		case reflect.Int32, reflect.Int64, reflect.Int:
			out = int64(0)
		}
	})
	return out
}

type modelNamed interface{ OpenAPIModelName() string }

// modelName is the name of t in upstream's documents.
func modelName(t reflect.Type) string {
	if n, ok := reflect.New(t).Interface().(modelNamed); ok {
		return n.OpenAPIModelName()
	}
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}
