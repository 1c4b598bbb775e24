package device

import (
	"fmt"
	"math"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// maxValues bounds how many parts a policy can name.
const maxValues = 10

// validatePolicy checks which parts of a capacity may be asked for: only what several
// share has parts.
func validatePolicy(c resourcev1.DeviceCapacity, shared bool, at *field.Path) field.ErrorList {
	p := c.RequestPolicy
	switch {
	case p == nil:
		return nil
	case !shared:
		return field.ErrorList{field.Forbidden(at, "allowMultipleAllocations must be true")}
	case len(p.ValidValues) > 0 && p.ValidRange != nil:
		return field.ErrorList{field.Forbidden(at,
			`exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case len(p.ValidValues) > 0 && p.Default == nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validValues is defined")}
	case len(p.ValidValues) > 0:
		return validateValues(p.ValidValues, *p.Default, c.Value, at.Child("validValues"))
	case p.ValidRange != nil && p.Default == nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validRange is defined")}
	case p.ValidRange != nil:
		return validateRange(p.ValidRange, *p.Default, c.Value, at.Child("validRange"))
	}
	return nil
}

// validateValues checks parts of which one may be asked for: they grow, none is more
// than there is, and the default is one of them.
func validateValues(values []apiresource.Quantity, usual, whole apiresource.Quantity, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := 1; i < len(values); i++ {
		if values[i-1].Cmp(values[i]) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), values[i].String(), "values must be sorted in ascending order"))
		}
	}
	if len(values) > maxValues {
		errs = append(errs, field.TooMany(at, len(values), maxValues))
		return append(errs, notAValue(usual, at))
	}
	found, seen := false, map[string]bool{}
	for i, value := range values {
		if value.Cmp(whole) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), value.String(), "option is larger than capacity value: "+whole.String()))
		}
		found = found || value.Cmp(usual) == 0
		key := strconv.FormatInt(value.Value(), 10)
		if seen[key] {
			errs = append(errs, field.Duplicate(at.Index(i), key))
		}
		seen[key] = true
	}
	if !found {
		errs = append(errs, notAValue(usual, at))
	}
	return errs
}

func notAValue(usual apiresource.Quantity, at *field.Path) *field.Error {
	return field.Invalid(at, usual.String(), "default value is not valid according to the requestPolicy")
}

// validateRange checks between which bounds, and in which steps, parts may be asked for.
func validateRange(r *resourcev1.CapacityRequestPolicyRange, usual, whole apiresource.Quantity, at *field.Path) field.ErrorList {
	if r.Min == nil {
		return field.ErrorList{field.Required(at.Child("min"), "required when validRange is defined")}
	}
	var errs field.ErrorList
	above := func(name string, q, bound *apiresource.Quantity, says string) {
		if q.Cmp(*bound) > 0 {
			errs = append(errs, field.Invalid(at.Child(name), q.String(), says+bound.String()))
		}
	}
	above("min", r.Min, &whole, "min is larger than capacity value: ")
	if usual.Cmp(*r.Min) < 0 {
		errs = append(errs, field.Invalid(at.Child("default"), usual.String(), "default is less than min: "+r.Min.String()))
	}
	if r.Max != nil {
		above("max", r.Min, r.Max, "min is larger than max: ")
		above("max", r.Max, &whole, "max is larger than capacity value: ")
		above("default", &usual, r.Max, "default is more than max: ")
	}
	if r.Step == nil {
		return errs
	}
	return append(errs, validateStep(r, usual, whole, at)...)
}

// validateStep counts with whole numbers, as upstream does as long as its feature of
// fractions is off.
func validateStep(r *resourcev1.CapacityRequestPolicyRange, usual, whole apiresource.Quantity, at *field.Path) field.ErrorList {
	step := at.Child("step")
	if r.Step.Sign() <= 0 {
		return field.ErrorList{field.Invalid(step, r.Step.String(), "must be greater than zero")}
	}
	var errs field.ErrorList
	first := r.Min.DeepCopy()
	if first.Add(*r.Step); first.Cmp(whole) > 0 {
		errs = append(errs, field.Invalid(step, r.Step.String(), fmt.Sprintf("one step %s is larger than capacity value: %s",
			first.String(), whole.String())))
	}
	bounds := []struct {
		name  string
		value *apiresource.Quantity
	}{{"default", &usual}, {"min", r.Min}, {"max", r.Max}, {"step", r.Step}}
	var wrong field.ErrorList
	for _, b := range bounds {
		switch {
		case b.value == nil:
		case b.value.Sign() < 0:
			wrong = append(wrong, field.Invalid(at.Child(b.name), b.value.String(), check.NotNegative))
		case b.value.CmpInt64(math.MaxInt64) > 0:
			wrong = append(wrong, field.Invalid(at.Child(b.name), b.value.String(), fmt.Sprintf("must not be larger than %d", math.MaxInt64)))
		}
	}
	if len(wrong) > 0 {
		return append(errs, wrong...)
	}
	for _, value := range []*apiresource.Quantity{&usual, r.Max} {
		if value != nil && (value.Value()-r.Min.Value())%r.Step.Value() != 0 {
			errs = append(errs, field.Invalid(step, value.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)",
				r.Step.String(), r.Min.String())))
		}
	}
	return errs
}
