package check

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/apiserver/internal/field"
)

// Requirements checks the resources of a container, or of a pod as a whole, and their names with isName.
func Requirements(
	r *corev1.ResourceRequirements, isName func(corev1.ResourceName, *field.Path) field.ErrorList, at *field.Path,
) field.ErrorList {
	limits, requests := at.Child("limits"), at.Child("requests")
	errs := amounts(r.Limits, isName, limits)
	errs = append(errs, amounts(r.Requests, isName, requests)...)
	errs = append(errs, withinLimits(r, limits, requests)...)
	return append(errs, hugePagesNeedMore(r, at)...)
}

// Overhead checks what a runtime needs for itself in a pod.
func Overhead(list corev1.ResourceList, at *field.Path) field.ErrorList {
	return Requirements(&corev1.ResourceRequirements{Limits: list}, ContainerResource, at)
}

func amounts(
	list corev1.ResourceList, isName func(corev1.ResourceName, *field.Path) field.ErrorList, at *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for name, amount := range list {
		path := at.Key(string(name))
		errs = append(errs, isName(name, path)...)
		errs = append(errs, Quantity(name, amount, path)...)
		if IsHugePage(name) && !isWholePages(name, amount) {
			errs = append(errs, field.Invalid(path, amount.String(),
				fmt.Sprintf("%s is not positive integer multiple of %s", amount.String(), name)))
		}
	}
	return errs
}

// isWholePages reports whether an amount is a multiple of the size in the resource's name.
func isWholePages(name corev1.ResourceName, amount resource.Quantity) bool {
	page, err := resource.ParseQuantity(string(name[len(corev1.ResourceHugePagesPrefix):]))
	// The value of more than an int64 holds is 0.
	return err == nil && page.Value() > 0 && page.MilliValue()%1000 == 0 && amount.Value()%page.Value() == 0
}

func withinLimits(r *corev1.ResourceRequirements, limits, requests *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, amount := range r.Requests {
		limit, limited := r.Limits[name]
		switch {
		case limited && !IsOvercommit(name) && amount.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(requests, amount.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && amount.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(requests, amount.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case !limited && !IsOvercommit(name):
			errs = append(errs, field.Required(limits, "Limit must be set for non overcommitable resources"))
		}
	}
	return errs
}

func hugePagesNeedMore(r *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	huge, more := false, false
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			huge = huge || IsHugePage(name)
			more = more || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		}
	}
	if huge && !more {
		return field.ErrorList{field.Forbidden(at, "HugePages require cpu or memory")}
	}
	return nil
}

// PodResource checks the name of a resource that a pod as a whole requests.
func PodResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	if errs := resourceName(name, path); len(errs) > 0 {
		return errs
	}
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !IsHugePage(name) {
		return field.ErrorList{field.NotSupported(path, name, []string{"cpu", "hugepages-", "memory"})}
	}
	return nil
}
