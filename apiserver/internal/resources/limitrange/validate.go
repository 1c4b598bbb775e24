package limitrange

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var standardTypes = []corev1.LimitType{corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim}

func validate(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.LimitType]bool{}
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validateType(item.Type, at.Child("type"))...)
		if seen[item.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		seen[item.Type] = true
		errs = append(errs, validateItem(item, at)...)
	}
	return errs
}

func validateType(t corev1.LimitType, at *field.Path) field.ErrorList {
	errs := check.QualifiedName(string(t), at)
	if len(errs) == 0 && !strings.Contains(string(t), "/") && !slices.Contains(standardTypes, t) {
		errs = append(errs, field.Invalid(at, t, "must be a standard limit type or fully qualified"))
	}
	return errs
}

func validateItem(item *corev1.LimitRangeItem, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	lists := []struct {
		name string
		list corev1.ResourceList
	}{{"max", item.Max}, {"min", item.Min}, {"default", item.Default}, {"defaultRequest", item.DefaultRequest},
		{"maxLimitRequestRatio", item.MaxLimitRequestRatio}}
	names := map[corev1.ResourceName]bool{}
	for _, l := range lists {
		defaulting := strings.HasPrefix(l.name, "default")
		if item.Type == corev1.LimitTypePod && defaulting {
			if len(l.list) > 0 {
				errs = append(errs, field.Forbidden(at.Child(l.name), "may not be specified when `type` is 'Pod'"))
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(l.list)) {
			ofContainers := item.Type == corev1.LimitTypePod || item.Type == corev1.LimitTypeContainer
			errs = append(errs, check.LimitedResource(name, ofContainers, at.Child(l.name).Key(string(name)))...)
			names[name] = true
		}
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := item.Min[corev1.ResourceStorage]
		_, most := item.Max[corev1.ResourceStorage]
		if !least && !most {
			errs = append(errs, field.Required(at.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		errs = append(errs, validateBounds(item, name, at)...)
	}
	return errs
}

// validateBounds checks that an item's bounds of one resource are consistent.
func validateBounds(item *corev1.LimitRangeItem, name corev1.ResourceName, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	least, hasLeast := item.Min[name]
	most, hasMost := item.Max[name]
	request, hasRequest := item.DefaultRequest[name]
	limit, hasLimit := item.Default[name]
	ratio, hasRatio := item.MaxLimitRequestRatio[name]
	refuse := func(wrong bool, list string, value resource.Quantity, format string, words ...any) {
		if wrong {
			errs = append(errs, field.Invalid(at.Child(list).Key(string(name)), value.String(), fmt.Sprintf(format, words...)))
		}
	}
	refuse(hasLeast && hasMost && least.Cmp(most) > 0, "min", least, "min value %s is greater than max value %s", &least, &most)
	refuse(hasRequest && hasLeast && least.Cmp(request) > 0, "defaultRequest", request,
		"min value %s is greater than default request value %s", &least, &request)
	refuse(hasRequest && hasMost && request.Cmp(most) > 0, "defaultRequest", request,
		"default request value %s is greater than max value %s", &request, &most)
	refuse(hasRequest && hasLimit && request.Cmp(limit) > 0, "defaultRequest", request,
		"default request value %s is greater than default limit value %s", &request, &limit)
	refuse(hasLimit && hasLeast && least.Cmp(limit) > 0, "default", least, "min value %s is greater than default value %s", &least, &limit)
	refuse(hasLimit && hasMost && limit.Cmp(most) > 0, "default", most, "default value %s is greater than max value %s", &limit, &most)
	refuse(hasRatio && ratio.Cmp(resource.MustParse("1")) < 0, "maxLimitRequestRatio", ratio, "ratio %s is less than 1", &ratio)
	if hasRatio && hasLeast && hasMost && least.Sign() > 0 {
		widest := most.AsApproximateFloat64() / least.AsApproximateFloat64()
		refuse(ratio.AsApproximateFloat64() > widest, "maxLimitRequestRatio", ratio, "ratio %s is greater than max/min = %f", &ratio, widest)
	}
	if !check.IsOvercommit(name) && hasRequest && hasLimit {
		refuse(request.Cmp(limit) != 0, "defaultRequest", request,
			"default value %s must equal to defaultRequest value %s in %s", &limit, &request, name)
	}
	return errs
}
