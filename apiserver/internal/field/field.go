package field

import "k8s.io/apimachinery/pkg/util/validation/field"

// Errors and what they are made of are Kubernetes' own.
type (
	Error         = field.Error
	ErrorList     = field.ErrorList
	OmitValueType = field.OmitValueType
)

// ErrorTypeRequired is the kind of those that Required makes.
const ErrorTypeRequired = field.ErrorTypeRequired

// Path is a place in an object; nil is its root.
type Path field.Path

// nowhere is the path of everything while paths don't matter.
var nowhere = new(Path)

// NewPath is the path from an object's root.
func NewPath(name string, more ...string) *Path { return (*Path)(field.NewPath(name, more...)) }

// Twice returns the errors that validate finds at a path. validate must find the
// same at any path.
func Twice(at *Path, validate func(at *Path) ErrorList) ErrorList {
	if len(validate(nowhere)) == 0 {
		return nil
	}
	return validate(at)
}

// Upstream is the path for Kubernetes' own validators.
func (p *Path) Upstream() *field.Path { return (*field.Path)(p) }

// Child is the path of the named field, and of further fields below it.
func (p *Path) Child(name string, more ...string) *Path {
	if p == nowhere {
		return p
	}
	return (*Path)(p.Upstream().Child(name, more...))
}

// Index is an element of a list.
func (p *Path) Index(i int) *Path {
	if p == nowhere {
		return p
	}
	return (*Path)(p.Upstream().Index(i))
}

// Key is an entry of a map.
func (p *Path) Key(key string) *Path {
	if p == nowhere {
		return p
	}
	return (*Path)(p.Upstream().Key(key))
}

// String is the path as users read it.
func (p *Path) String() string { return p.Upstream().String() }
