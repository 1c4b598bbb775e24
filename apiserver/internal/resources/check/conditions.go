package check

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Conditions checks conditions, of which there is one of each type.
func Conditions(conditions []metav1.Condition, at *field.Path) field.ErrorList {
	errs := validation.ValidateConditions(conditions, at)
	types := sets.New[string]()
	for i, c := range conditions {
		if types.Has(c.Type) {
			errs = append(errs, field.Duplicate(at.Index(i), c.Type))
		}
		types.Insert(c.Type)
	}
	return errs
}

// ConditionTypes checks no more of conditions than that each has a type of its
// own.
func ConditionTypes[C any](conditions []C, typeOf func(C) string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[string]()
	for i, c := range conditions {
		name, at := typeOf(c), at.Index(i).Child("type")
		switch {
		case name == "":
			errs = append(errs, field.Required(at, ""))
		case types.Has(name):
			errs = append(errs, field.Duplicate(at, name))
		}
		types.Insert(name)
	}
	return errs
}
