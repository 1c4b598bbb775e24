package check

import (
	"context"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validate/content"
	utilfield "k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/field"
)

// Upstream words the errors of declarative validation (tags +k8s:…) differently
// from those of handwritten functions. Here are the checks that differ.

// DeclaredImmutable is Unchanged for a field that is declared immutable.
func DeclaredImmutable(now, old any, at *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(now, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, nil, Immutable)}
}

// ShortName is Label for a field declared as k8s-short-name.
func ShortName(name string, at *field.Path) field.ErrorList {
	if isDNSLabel(name) {
		return nil
	}
	return Messages(at, name, content.IsDNS1123Label(name))
}

// NamedDriver is DriverName for a field declared as k8s-long-name-caseless.
func NamedDriver(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if utf8.RuneCountInString(name) > maxDriverName {
		errs = append(errs, utilfield.TooLongCharacters(at.Upstream(), name, maxDriverName))
	}
	return append(errs, Messages(at, name, content.IsDNS1123SubdomainCaseless(name))...)
}

// Declared are the errors that one of upstream's functions for declarative
// validation finds in a value.
func Declared[T any](value T, at *field.Path,
	by func(context.Context, operation.Operation, *utilfield.Path, *T, *T) field.ErrorList) field.ErrorList {
	return by(context.Background(), operation.Operation{}, at.Upstream(), &value, nil)
}

// MaxItems checks the declared maximum length of a list. The items of a longer one are not
// validated.
func MaxItems[T any](list []T, most int, at *field.Path) field.ErrorList {
	return validate.MaxItems(context.Background(), operation.Operation{}, at.Upstream(), list, nil, most)
}

// Unique reports items of a list whose key an earlier item has. It must be fast
// for lists as long as a request body.
func Unique[T any, K comparable](list []T, at *field.Path, key func(item *T) K) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(&list[i])
		if seen[k] {
			errs = append(errs, field.Duplicate(at.Index(i), list[i]))
		}
		seen[k] = true
	}
	return errs
}

// Itself is the key of items that are compared as a whole.
func Itself[T any](item *T) T { return *item }
