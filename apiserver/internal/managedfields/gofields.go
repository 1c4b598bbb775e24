package managedfields

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// jsonField is a Go struct's field in JSON.
type jsonField struct {
	name  string
	index []int
	of    reflect.Type
	// omitted reports whether a value is left out; nil if none is.
	omitted func(reflect.Value) bool
}

// jsonFields are the fields of a struct, including those of embedded ones. ok is
// false if a field has no name of its own, or a duplicate one, or may be
// unreachable.
func jsonFields(t reflect.Type) (out []jsonField, ok bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct && !writesItself(field.Type):
			inner, ok := jsonFields(field.Type)
			if !ok {
				return nil, false
			}
			for _, f := range inner {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
		case name == "":
			return nil, false
		default:
			out = append(out, jsonField{name: name, index: []int{i}, of: field.Type, omitted: omission(field.Type, strings.Split(options, ","))})
		}
	}
	for i, f := range out {
		if slices.ContainsFunc(out[:i], func(other jsonField) bool { return other.name == f.name }) {
			return nil, false
		}
	}
	return out, true
}

// omission returns what decides whether a field of type t is left out of the JSON.
func omission(t reflect.Type, options []string) func(reflect.Value) bool {
	empty, zero := omitEmpty(t), reflect.Value.IsZero
	if reflect.PointerTo(t).Implements(zeroType) {
		zero = saysZero
	}
	byEmpty, byZero := slices.Contains(options, "omitempty") && empty != nil, slices.Contains(options, "omitzero")
	switch {
	case byEmpty && byZero:
		return func(v reflect.Value) bool { return empty(v) || zero(v) }
	case byEmpty:
		return empty
	case byZero:
		return zero
	}
	return nil
}

// omitEmpty reports which values of type t omitempty leaves out; nil if none.
func omitEmpty(t reflect.Type) func(reflect.Value) bool {
	switch t.Kind() {
	case reflect.Struct:
		return nil
	case reflect.Slice, reflect.Map, reflect.Array:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	}
	return reflect.Value.IsZero
}

type zeroer interface{ IsZero() bool }

var (
	zeroType = reflect.TypeFor[zeroer]()
	jsonType = reflect.TypeFor[json.Marshaler]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
)

// saysZero asks the value's IsZero method.
func saysZero(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return true
	}
	if !v.CanAddr() {
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		v = own
	}
	return v.Addr().Interface().(zeroer).IsZero()
}

// writesItself reports whether values of type t have a JSON encoding of their
// own.
func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonType) || p.Implements(textType)
}
