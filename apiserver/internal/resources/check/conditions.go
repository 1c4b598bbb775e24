package check

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
)

// ConditionTypes only checks that each condition has a type of its own.
func ConditionTypes[C any](conditions []C, typeOf func(C) string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[string]()
	for i, c := range conditions {
		name, at := typeOf(c), at.Index(i).Child("type")
		if types.Has(name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		if name == "" {
			errs = append(errs, field.Required(at, ""))
		}
		types.Insert(name)
	}
	return errs
}
