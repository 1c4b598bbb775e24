package mergeschema

import (
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// ForStructuredMergeDiff is s, with everything it contains, in the form of the merge library;
// name is the type of s in it.
func ForStructuredMergeDiff(s *Schema) (types *schema.Schema, name string) {
	w := &converter{names: map[*Schema]string{}, schema: &schema.Schema{}, taken: map[string]bool{}}
	ref := w.typeRef(s)
	w.finish()
	return w.schema, *ref.NamedType
}

type converter struct {
	names  map[*Schema]string
	taken  map[string]bool
	schema *schema.Schema
}

// The names of types that the schema always has.
const (
	untypedAtomic  = "__untyped_atomic_"
	untypedDeduced = "__untyped_deduced_"
)

// typeRef names the type of s, and defines it if it is new.
func (w *converter) typeRef(s *Schema) schema.TypeRef {
	if s == nil || s == anyAtomic {
		return schema.TypeRef{NamedType: new(untypedAtomic)}
	}
	if s.Kind == Deduced {
		return schema.TypeRef{NamedType: new(untypedDeduced)}
	}
	if name, known := w.names[s]; known {
		return schema.TypeRef{NamedType: &name}
	}
	name := s.Name
	if name == "" || w.taken[name] {
		name = "__" + strconv.Itoa(len(w.schema.Types)) + "_" + s.Name
	}
	w.names[s], w.taken[name] = name, true
	at := len(w.schema.Types)
	w.schema.Types = append(w.schema.Types, schema.TypeDef{Name: name})
	w.schema.Types[at].Atom = w.atom(s)
	return schema.TypeRef{NamedType: &name}
}

func (w *converter) atom(s *Schema) schema.Atom {
	switch s.Kind {
	case Struct, Map, AtomicMap:
		m := &schema.Map{ElementRelationship: schema.Separable}
		if s.Kind == AtomicMap {
			m.ElementRelationship = schema.Atomic
		}
		for name, field := range s.Fields {
			m.Fields = append(m.Fields, schema.StructField{Name: name, Type: w.typeRef(field)})
		}
		if s.Element != nil || s.Kind != Struct && len(s.Fields) == 0 {
			m.ElementType = w.typeRef(s.Element)
		}
		return schema.Atom{Map: m}
	case ListSet, ListMap:
		l := &schema.List{ElementRelationship: schema.Associative}
		for _, key := range s.Keys {
			l.Keys = append(l.Keys, key.Name)
		}
		l.ElementType = w.element(s)
		return schema.Atom{List: l}
	case AtomicList:
		return schema.Atom{List: &schema.List{ElementRelationship: schema.Atomic, ElementType: w.typeRef(s.Element)}}
	}
	if s.Type == "" {
		return schema.Atom{Scalar: new(schema.Scalar("untyped"))}
	}
	return schema.Atom{Scalar: new(schema.Scalar(s.Type))}
}

// element is the type of a list's elements, with the defaults of its keys,
// which the same type need not have elsewhere.
func (w *converter) element(s *Schema) schema.TypeRef {
	ref := w.typeRef(s.Element)
	for i := range w.schema.Types {
		if def := &w.schema.Types[i]; def.Name == *ref.NamedType && def.Map != nil {
			withDefaults(def.Map, s.Keys)
		}
	}
	return ref
}

func withDefaults(m *schema.Map, keys []Key) {
	for i := range m.Fields {
		for _, key := range keys {
			if key.Name == m.Fields[i].Name && key.Default != nil {
				m.Fields[i].Default = key.Default
			}
		}
	}
}

// finish adds the types that every schema has.
func (w *converter) finish() {
	for _, free := range []struct {
		name     string
		relation schema.ElementRelationship
	}{{untypedAtomic, schema.Atomic}, {untypedDeduced, schema.Separable}} {
		w.schema.Types = append(w.schema.Types, schema.TypeDef{Name: free.name, Atom: schema.Atom{
			Scalar: new(schema.Scalar("untyped")),
			List:   &schema.List{ElementRelationship: schema.Atomic, ElementType: schema.TypeRef{NamedType: new(untypedAtomic)}},
			Map:    &schema.Map{ElementRelationship: free.relation, ElementType: schema.TypeRef{NamedType: new(free.name)}},
		}})
	}
}
