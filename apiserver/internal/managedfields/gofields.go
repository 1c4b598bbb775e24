package managedfields

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// jsonField is a field of a Go struct as it is in JSON.
type jsonField struct {
	name  string
	index []int
	of    reflect.Type
	// omitted tells whether a value is left out; nil where none is.
	omitted func(reflect.Value) bool
}

// jsonFields are the fields of a struct, those of embedded ones included. It is
// not ok where a field has no name of its own, or one that is there twice, or may
// not be reached.
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

// omission is what leaves a field of type t out of the JSON.
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

// omitEmpty is what omitempty leaves out of values of type t; nil where that is
// nothing.
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

// saysZero asks a value that knows by itself.
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

// writesItself tells whether values of type t say by themselves what JSON they
// become.
func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonType) || p.Implements(textType)
}
