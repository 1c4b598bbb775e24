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

// What upstream's types declare of a field (tags +k8s:…) it tells in other words
// than what its functions check of the others. Here are those that differ.

// Fixed is Same for a field that is declared never to change.
func Fixed(now, old any, at *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(now, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, nil, Immutable)}
}

// ShortName is Label for a field that is declared to be one (k8s-short-name).
func ShortName(name string, at *field.Path) field.ErrorList {
	if plainLabel(name) {
		return nil
	}
	return Messages(at, name, content.IsDNS1123Label(name))
}

// NamedDriver is DriverName for a field that is declared to be one
// (k8s-long-name-caseless).
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

// Declared is what one of upstream's own functions for declared fields finds wrong
// with a value.
func Declared[T any](value T, at *field.Path, by func(context.Context, operation.Operation, *utilfield.Path, *T, *T) field.ErrorList) field.ErrorList {
	return by(context.Background(), operation.Operation{}, at.Upstream(), &value, nil)
}

// Most bounds the length of a list that is declared to be no longer. Of the items of a
// longer one nothing is said.
func Most[T any](list []T, most int, at *field.Path) field.ErrorList {
	return validate.MaxItems(context.Background(), operation.Operation{}, at.Upstream(), list, nil, most)
}

// Unique refuses the items of a list that are one that stands before them.
func Unique[T any](list []T, at *field.Path, same func(a, b *T) bool) field.ErrorList {
	return validate.ValSliceUnique(context.Background(), operation.Operation{}, at.Upstream(), list, nil, same)
}
