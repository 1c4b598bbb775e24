package mergeschema

// Schema is the structure of the values in one place, as structured-merge-diff's schemas
// describe it. The zero Schema is a
// scalar: a value that is only replaced as a whole, whatever its content. A
// Schema must not be changed once it is in use; it may contain itself.
type Schema struct {
	// Name identifies types in messages and schemas; it may be empty.
	Name string
	Kind Kind
	// Fields are those of a Struct.
	Fields map[string]*Schema
	// Element is the schema of a Map's or a list's elements, and of fields of a
	// Struct that Fields lacks; nil if there are none.
	Element *Schema
	// Type is the type of a Scalar: "string", "numeric" or "boolean"; "" if it may
	// be anything.
	Type string
	// Keys are the fields that identify the elements of a ListMap.
	Keys []Key
}

// Key is one of the fields that identify an element of a list.
type Key struct {
	Name string
	// Default is the value of an omitted field; nil if it must not be omitted.
	Default any
}

// Kind is how a value is merged.
type Kind uint8

const (
	// Scalar values, and atomic objects and lists, are replaced as a whole.
	Scalar Kind = iota
	// Struct has fields that are merged one by one.
	Struct
	// Map has entries that are merged one by one.
	Map
	// ListSet is a list of distinct scalars that are merged one by one.
	ListSet
	// ListMap is a list of objects identified by Keys.
	ListMap
	// AtomicList and AtomicMap are replaced as a whole, and known to be a list
	// and an object.
	AtomicList
	AtomicMap
	// Deduced depends on the value: objects are merged as a Map of Deduced, and
	// everything else is replaced.
	Deduced
)

// anyAtomic is the schema of values of any type that are replaced as a whole.
var anyAtomic = &Schema{}

// Anything is the schema of values of unknown structure.
var Anything = anything()

func anything() *Schema {
	s := &Schema{Kind: Deduced}
	s.Element = s
	return s
}

// Field is the schema of a field or an entry; nil if there is none.
func (s *Schema) Field(name []byte) *Schema {
	if field, ok := s.Fields[string(name)]; ok {
		return field
	}
	return s.Element
}
