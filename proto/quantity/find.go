package quantity

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxDepth is that of Go's decoder, which refuses what is deeper.
const maxDepth = 10_000

// Check refuses an object in JSON, which will be decoded into a value, with a quantity beyond
// the bounds. If the value has no type of its own (nil, or a map within an Unstructured),
// quantities are known by the usual names of their fields. A field that is there twice is
// looked at twice, because it is also decoded twice. What is no JSON is left to the decoder.
func Check(object []byte, into any) error {
	if text, found := findHuge(object, into); found {
		return errors.New(Refusal([]byte(text)))
	}
	return nil
}

// findHuge returns the first quantity beyond the bounds.
func findHuge(object []byte, into any) (text string, found bool) {
	// Digits may also be written as \u0030 to \u0039.
	if !MayBeIn(object) && !bytes.Contains(object, []byte(`\u00`)) {
		return "", false
	}
	start := typed(reflect.TypeOf(into))
	if _, free := into.(*unstructured.Unstructured); free || into == nil {
		start = place{byName: true}
	}
	f := finder{json.NewDecoder(bytes.NewReader(object))}
	f.UseNumber()
	text, err := f.find(start, 0)
	return text, err == nil && text != ""
}

type finder struct{ *json.Decoder }

var errTooDeep = errors.New("too deep")

// find reads the next value, and returns the text of the first huge quantity in it.
func (f finder) find(at place, depth int) (text string, err error) {
	token, err := f.Token()
	if err != nil {
		return "", err
	}
	switch token := token.(type) {
	case string:
		text = token
	case json.Number:
		text = token.String()
	case json.Delim:
		if depth == maxDepth {
			return "", errTooDeep
		}
		return f.findWithin(at, token == '{', depth)
	}
	if at.isQuantity() && Huge([]byte(text)) {
		return text, nil
	}
	return "", nil
}

// findWithin reads the rest of an object, or of a list.
func (f finder) findWithin(at place, isObject bool, depth int) (text string, err error) {
	for f.More() {
		next := at.element()
		if isObject {
			token, err := f.Token()
			if err != nil {
				return "", err
			}
			name, _ := token.(string)
			next = at.field(name)
		}
		if text, err = f.find(next, depth+1); err != nil || text != "" {
			return text, err
		}
	}
	_, err = f.Token() // its end
	return "", err
}

// place is where a value is: of a type (nil if it is unknown; never a pointer), or, byName,
// in fields with these names.
type place struct {
	as              reflect.Type
	byName, isNamed bool
}

// typed is the place of a value of a type: what pointers point to is decoded in their place.
func typed(as reflect.Type) place {
	for as != nil && as.Kind() == reflect.Pointer {
		as = as.Elem()
	}
	return place{as: as}
}

// names are those of the usual fields that hold quantities, or maps of them.
var names = map[string]bool{
	"limits": true, "requests": true, "overhead": true, "capacity": true, "allocatable": true,
	"allocatedResources": true, "sizeLimit": true, "divisor": true,
}

var quantityType = reflect.TypeFor[resource.Quantity]()

func (p place) isQuantity() bool {
	return p.isNamed || p.as == quantityType
}

func (p place) kind() reflect.Kind {
	if p.as == nil {
		return reflect.Invalid
	}
	return p.as.Kind()
}

func (p place) element() place {
	switch p.kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return typed(p.as.Elem())
	}
	return place{byName: p.byName, isNamed: p.isNamed}
}

func (p place) field(name string) place {
	switch {
	case p.byName:
		return place{byName: true, isNamed: p.isNamed || names[name]}
	case p.kind() == reflect.Struct:
		return typed(fieldsOf(p.as)[name])
	}
	return p.element()
}

// structs are the fields of struct types, by their names in JSON.
var structs sync.Map

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := structs.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := typed(field.Type)
		switch {
		case name != "":
			fields[name] = field.Type
		case field.Anonymous && embedded.kind() == reflect.Struct:
			maps.Copy(fields, fieldsOf(embedded.as))
		}
	}
	structs.Store(t, fields)
	return fields
}
