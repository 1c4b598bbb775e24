package mergeschema

import (
	"reflect"
	"testing"
)

// TestWith: a schema gets the fields that another has in the same places, and nothing is copied
// that the other adds nothing to.
func TestWith(t *testing.T) {
	text, number := &Schema{Type: "string"}, &Schema{Type: "numeric"}
	object := func(fields map[string]*Schema) *Schema { return &Schema{Kind: Struct, Fields: fields} }
	mapOf := func(element *Schema) *Schema { return &Schema{Kind: Map, Element: element} }
	list := func(kind Kind, element *Schema) *Schema { return &Schema{Kind: kind, Element: element} }
	type fields = map[string]*Schema
	for name, c := range map[string]struct{ one, other, want *Schema }{ // want is nil for one itself
		"less": {object(fields{"a": text, "b": text}), object(fields{"a": text}), nil},
		"the same, copied": {object(fields{"a": list(ListMap, object(fields{"k": text}))}),
			object(fields{"a": list(ListMap, object(fields{"k": {Type: "string"}}))}), nil},
		"another type":       {object(fields{"a": text}), object(fields{"a": number}), nil},
		"an object and text": {object(fields{"a": text}), object(fields{"a": object(fields{"b": text})}), nil},
		"anything":           {Anything, object(fields{"a": text}), nil},
		"any field":          {mapOf(text), object(fields{"a": number}), nil},
		"a field":            {object(fields{"a": text}), object(fields{"b": number}), object(fields{"a": text, "b": number})},
		"of nothing":         {object(nil), object(fields{"b": number}), object(fields{"b": number})},
		"deep": {object(fields{"a": list(AtomicList, object(fields{"k": text}))}), object(fields{"a": list(ListMap, object(fields{"l": text}))}),
			object(fields{"a": list(AtomicList, object(fields{"k": text, "l": text}))})},
		"values":            {object(fields{"a": text}), mapOf(number), &Schema{Kind: Struct, Fields: fields{"a": text}, Element: number}},
		"objects as values": {mapOf(object(fields{"a": text})), mapOf(object(fields{"b": text})), mapOf(object(fields{"a": text, "b": text}))},
	} {
		before := reflect.ValueOf(c.one.Fields).Len()
		got := c.one.With(c.other)
		if c.want == nil && got != c.one || c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		if reflect.ValueOf(c.one.Fields).Len() != before {
			t.Errorf("%s: the schema itself was changed", name)
		}
	}
}
