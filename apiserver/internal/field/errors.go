package field

import "k8s.io/apimachinery/pkg/util/validation/field"

// The kinds of errors, each as Kubernetes' own function of that name makes it.

// Invalid: the field may not have this value.
func Invalid(at *Path, value any, detail string) *Error {
	return field.Invalid(at.Upstream(), value, detail)
}

// Required: the field must have a value.
func Required(at *Path, detail string) *Error { return field.Required(at.Upstream(), detail) }

// Forbidden: the field may not have a value, or not another one than before.
func Forbidden(at *Path, detail string) *Error { return field.Forbidden(at.Upstream(), detail) }

// NotSupported: the value is not one of the supported ones.
func NotSupported[T ~string](at *Path, value any, supported []T) *Error {
	return field.NotSupported(at.Upstream(), value, supported)
}

// Duplicate: the value occurs twice.
func Duplicate(at *Path, value any) *Error { return field.Duplicate(at.Upstream(), value) }

// NotFound: what the value refers to does not exist.
func NotFound(at *Path, value any) *Error { return field.NotFound(at.Upstream(), value) }

// TooLong: the value has more than the given number of bytes.
func TooLong(at *Path, value any, most int) *Error { return field.TooLong(at.Upstream(), value, most) }

// TooMany: there are more elements than allowed; a negative count means that they were
// not counted.
func TooMany(at *Path, count, most int) *Error { return field.TooMany(at.Upstream(), count, most) }

// InternalError: it could not be determined whether the value is valid.
func InternalError(at *Path, err error) *Error { return field.InternalError(at.Upstream(), err) }
