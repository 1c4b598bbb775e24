package shape

// Shape is how values in one place are put together. The zero Shape is a
// scalar: a value that is only ever replaced as a whole, whatever is in it. A
// Shape must not be changed once it is in use; it may contain itself.
type Shape struct {
	// Name tells types apart in messages and schemas; it may be empty.
	Name string
	Kind Kind
	// Fields are those of a Struct.
	Fields map[string]*Shape
	// Element is what is in a Map or a list, and what fields of a Struct are
	// that Fields does not have; nil where there are no such.
	Element *Shape
	// Type is what a Scalar is: "string", "numeric" or "boolean"; "" where it
	// may be anything.
	Type string
	// Keys are the fields by which the elements of a Keyed list are told apart.
	Keys []Key
}

// Key is one of the fields that identify an element of a list.
type Key struct {
	Name string
	// Default stands for a field that is left out; nil where it must not be.
	Default any
}

// Kind is how a value is merged.
type Kind uint8

const (
	// Scalar values, and atomic objects and lists, are replaced as a whole.
	Scalar Kind = iota
	// Struct has fields, each for itself.
	Struct
	// Map has entries, each for itself.
	Map
	// Set is a list of scalars, each for itself and there once.
	Set
	// Keyed is a list of objects that are told apart by Keys.
	Keyed
	// AtomicList and AtomicMap are replaced as a whole, and known to be a list
	// and an object.
	AtomicList
	AtomicMap
	// Deduced is whatever the value is: objects are merged as a Map of more of
	// the same, and all else is replaced.
	Deduced
)

// replacedWhole is the shape of values that may be anything and are replaced as a whole.
var replacedWhole = &Shape{}

// Anything is the shape of values that nothing is known of.
var Anything = anything()

func anything() *Shape {
	s := &Shape{Kind: Deduced}
	s.Element = s
	return s
}

// Field is the shape of a field or an entry; nil where there is no such.
func (s *Shape) Field(name []byte) *Shape {
	if field, ok := s.Fields[string(name)]; ok {
		return field
	}
	return s.Element
}
