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

// Path is where in an object something stands; nil is its root.
type Path field.Path

// nowhere is where nobody asks where it is; so is whatever is below it.
var nowhere = new(Path)

// NewPath is the path from an object's root.
func NewPath(name string, more ...string) *Path { return (*Path)(field.NewPath(name, more...)) }

// Twice is what validate finds wrong with what stands at a path. It must find the
// same wherever it looks.
func Twice(at *Path, validate func(at *Path) ErrorList) ErrorList {
	if len(validate(nowhere)) == 0 {
		return nil
	}
	return validate(at)
}

// Upstream is the path as validators of Kubernetes' own take it.
func (p *Path) Upstream() *field.Path { return (*field.Path)(p) }

// Child is the field of the given name, and of that one, if more are given.
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
