package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// checkMin checks requests, and limits if there are any, against an item's minimum.
func checkMin(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []error {
	var errs []error
	refuse := func(format string, words ...any) { errs = append(errs, fmt.Errorf(format, words...)) }
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		least := item.Min[name]
		request, asks := requests[name]
		limit, bounded := limits[name]
		switch {
		case !asks:
			refuse("minimum %s usage per %s is %s.  No request is specified", name, item.Type, least.String())
		case request.Cmp(least) < 0:
			refuse("minimum %s usage per %s is %s, but request is %s", name, item.Type, least.String(), request.String())
		case bounded && limit.Cmp(least) < 0:
			refuse("minimum %s usage per %s is %s, but limit is %s", name, item.Type, least.String(), limit.String())
		}
	}
	return errs
}

// checkBounds checks requests and limits against an item.
func checkBounds(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []error {
	errs := checkMin(item, requests, limits)
	refuse := func(format string, words ...any) { errs = append(errs, fmt.Errorf(format, words...)) }
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		request, asks := requests[name]
		limit, bounded := limits[name]
		switch {
		case !bounded:
			refuse("maximum %s usage per %s is %s.  No limit is specified", name, item.Type, most.String())
		case limit.Cmp(most) > 0:
			refuse("maximum %s usage per %s is %s, but limit is %s", name, item.Type, most.String(), limit.String())
		case asks && request.Cmp(most) > 0:
			refuse("maximum %s usage per %s is %s, but request is %s", name, item.Type, most.String(), request.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		ratio := item.MaxLimitRequestRatio[name]
		request, limit := requests[name], limits[name]
		switch {
		case request.IsZero():
			refuse("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, item.Type, ratio.String())
		case limit.IsZero():
			refuse("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, item.Type, ratio.String())
		default:
			if have := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); have > ratio.AsApproximateFloat64() {
				refuse("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, item.Type, ratio.String(), have)
			}
		}
	}
	return errs
}

// checkRequestBounds checks requests against an item, for objects without limits.
func checkRequestBounds(item *corev1.LimitRangeItem, requests corev1.ResourceList) []error {
	errs := checkMin(item, requests, nil)
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		most := item.Max[name]
		if request, asks := requests[name]; !asks || request.Cmp(most) > 0 {
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, item.Type, most.String(), request.String()))
		}
	}
	return errs
}
