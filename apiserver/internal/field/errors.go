package field

import "k8s.io/apimachinery/pkg/util/validation/field"

// The kinds of errors, each as Kubernetes' own function of that name makes it.

// Invalid: the value is none that the field may have.
func Invalid(at *Path, value any, detail string) *Error {
	return field.Invalid(at.Upstream(), value, detail)
}

// Required: the field must have a value.
func Required(at *Path, detail string) *Error { return field.Required(at.Upstream(), detail) }

// Forbidden: the field may have no value, or none but the one it had.
func Forbidden(at *Path, detail string) *Error { return field.Forbidden(at.Upstream(), detail) }

// NotSupported: the value is none of those that there are.
func NotSupported[T ~string](at *Path, value any, supported []T) *Error {
	return field.NotSupported(at.Upstream(), value, supported)
}

// Duplicate: the value is there twice.
func Duplicate(at *Path, value any) *Error { return field.Duplicate(at.Upstream(), value) }

// NotFound: what the value refers to is not there.
func NotFound(at *Path, value any) *Error { return field.NotFound(at.Upstream(), value) }

// TooLong: the value has more than so many bytes.
func TooLong(at *Path, value any, most int) *Error { return field.TooLong(at.Upstream(), value, most) }

// TooMany: there are more elements than may be; fewer than none where nobody counted.
func TooMany(at *Path, count, most int) *Error { return field.TooMany(at.Upstream(), count, most) }

// InternalError: it could not be found out whether the value is right.
func InternalError(at *Path, err error) *Error { return field.InternalError(at.Upstream(), err) }
