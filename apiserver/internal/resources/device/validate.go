package device

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const (
	maxExpression = 10 << 10
	maxDevices    = 128
	maxDriverName = 63
)

func validateClaim(s *resourcev1.ResourceClaimSpec, at *field.Path) field.ErrorList {
	devices, requests := at.Child("devices"), at.Child("devices", "requests")
	var errs field.ErrorList
	if n := len(s.Devices.Requests); n > resourcev1.DeviceRequestsMaxSize {
		errs = append(errs, field.TooMany(requests, n, resourcev1.DeviceRequestsMaxSize))
	}
	names := sets.New[string]()
	for i := range s.Devices.Requests {
		r, path := &s.Devices.Requests[i], requests.Index(i)
		errs = append(errs, uniqueName(r.Name, *r, names, path.Child("name"), path)...)
		switch {
		case r.Exactly == nil && len(r.FirstAvailable) == 0:
			errs = append(errs, field.Required(path, "exactly one of `exactly` or `firstAvailable` is required"))
		case r.Exactly != nil && len(r.FirstAvailable) > 0:
			errs = append(errs, field.Invalid(path, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
		case r.Exactly != nil:
			errs = append(errs, validateRequest(r.Exactly.DeviceClassName, r.Exactly.Selectors, r.Exactly.AllocationMode, r.Exactly.Count, path.Child("exactly"))...)
			errs = append(errs, validateTolerations(r.Exactly.Tolerations, path.Child("exactly", "tolerations"))...)
		}
		if n := len(r.FirstAvailable); n > resourcev1.FirstAvailableDeviceRequestMaxSize {
			errs = append(errs, field.TooMany(path.Child("firstAvailable"), n, resourcev1.FirstAvailableDeviceRequestMaxSize))
		}
		if r.Exactly != nil {
			continue
		}
		parts := sets.New[string]()
		for k := range r.FirstAvailable {
			sub, subPath := &r.FirstAvailable[k], path.Child("firstAvailable").Index(k)
			errs = append(errs, uniqueName(sub.Name, *sub, parts, subPath.Child("name"), subPath)...)
			names.Insert(r.Name + "/" + sub.Name)
			errs = append(errs, validateRequest(sub.DeviceClassName, sub.Selectors, sub.AllocationMode, sub.Count, subPath)...)
			errs = append(errs, validateTolerations(sub.Tolerations, subPath.Child("tolerations"))...)
		}
	}
	if n := len(s.Devices.Constraints); n > resourcev1.DeviceConstraintsMaxSize {
		errs = append(errs, field.TooMany(devices.Child("constraints"), n, resourcev1.DeviceConstraintsMaxSize))
	}
	for i, c := range s.Devices.Constraints {
		path := devices.Child("constraints").Index(i)
		errs = append(errs, known(c.Requests, names, path.Child("requests"))...)
		switch {
		case c.MatchAttribute != nil:
			errs = append(errs, fullName(string(*c.MatchAttribute), path.Child("matchAttribute"))...)
		case c.DistinctAttribute != nil:
			errs = append(errs, fullName(string(*c.DistinctAttribute), path.Child("distinctAttribute"))...)
		default:
			errs = append(errs, field.Required(path, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
		}
	}
	if n := len(s.Devices.Config); n > resourcev1.DeviceConfigMaxSize {
		errs = append(errs, field.TooMany(devices.Child("config"), n, resourcev1.DeviceConfigMaxSize))
	}
	for i, c := range s.Devices.Config {
		path := devices.Child("config").Index(i)
		errs = append(errs, known(c.Requests, names, path.Child("requests"))...)
		errs = append(errs, validateConfiguration(c.DeviceConfiguration, path)...)
	}
	return errs
}

func uniqueName(name string, of any, seen sets.Set[string], at, item *field.Path) field.ErrorList {
	errs := check.Label(name, at)
	if seen.Has(name) {
		errs = append(errs, field.Duplicate(item, of))
	}
	seen.Insert(name)
	return errs
}

// known checks that a constraint or a configuration is about requests of the
// claim.
func known(requests []string, names sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range requests {
		if slices.Contains(requests[:i], name) {
			errs = append(errs, field.Duplicate(at.Index(i), name))
			continue
		}
		for part := range strings.SplitSeq(name, "/") {
			errs = append(errs, check.Label(part, at.Index(i))...)
		}
		if !names.Has(name) {
			errs = append(errs, field.Invalid(at.Index(i), name, "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"))
		}
	}
	return errs
}

func validateRequest(class string, selectors []resourcev1.DeviceSelector, mode resourcev1.DeviceAllocationMode, count int64, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if class == "" {
		errs = append(errs, field.Required(at.Child("deviceClassName"), ""))
	} else {
		errs = append(errs, check.Messages(at.Child("deviceClassName"), class, check.NameIsSubdomain(class, false))...)
	}
	errs = append(errs, validateSelectors(selectors, at.Child("selectors"))...)
	switch mode {
	case resourcev1.DeviceAllocationModeAll:
		if count != 0 {
			errs = append(errs, field.Invalid(at.Child("count"), count, "must not be specified when allocationMode is 'All'"))
		}
	case resourcev1.DeviceAllocationModeExactCount:
		if count <= 0 {
			errs = append(errs, field.Invalid(at.Child("count"), count, "must be greater than zero"))
		}
	default:
		errs = append(errs, check.Supported(mode, at.Child("allocationMode"),
			resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount)...)
	}
	return errs
}

func validateSelectors(selectors []resourcev1.DeviceSelector, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(selectors) > resourcev1.DeviceSelectorsMaxSize {
		errs = append(errs, field.TooMany(at, len(selectors), resourcev1.DeviceSelectorsMaxSize))
	}
	for i, s := range selectors {
		path := at.Index(i).Child("cel")
		switch {
		case s.CEL == nil:
			errs = append(errs, field.Required(path, ""))
		case len(s.CEL.Expression) > maxExpression:
			errs = append(errs, field.TooLong(path.Child("expression"), "", maxExpression))
		default:
			if err := validateSelector(s.CEL.Expression, path.Child("expression")); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// validateClaimStatus checks that what was allocated stays as long as it is
// allocated, and that nothing reserves what is not.
func validateClaimStatus(c, old *resourcev1.ResourceClaim) field.ErrorList {
	at := field.NewPath("status")
	var errs field.ErrorList
	if n := len(c.Status.ReservedFor); n > resourcev1.ResourceClaimReservedForMaxSize {
		errs = append(errs, field.TooMany(at.Child("reservedFor"), n, resourcev1.ResourceClaimReservedForMaxSize))
	}
	seen := sets.New[string]()
	for i, user := range c.Status.ReservedFor {
		path := at.Child("reservedFor").Index(i)
		for _, f := range []struct{ name, value string }{{"resource", user.Resource}, {"name", user.Name}, {"uid", string(user.UID)}} {
			if f.value == "" {
				errs = append(errs, field.Required(path.Child(f.name), ""))
			}
		}
		if seen.Has(string(user.UID)) {
			errs = append(errs, field.Duplicate(path, user.UID))
		}
		seen.Insert(string(user.UID))
	}
	if len(c.Status.ReservedFor) > 0 && c.Status.Allocation == nil {
		errs = append(errs, field.Forbidden(at.Child("reservedFor"), "may not be specified when `allocated` is not set"))
	}
	if c.Status.Allocation != nil && old.Status.Allocation != nil {
		errs = append(errs, check.Same(c.Status.Allocation, old.Status.Allocation, at.Child("allocation"))...)
	}
	return errs
}

func validateDriver(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if len(name) > maxDriverName {
		errs = append(errs, field.TooLong(at, name, maxDriverName))
	}
	return append(errs, check.Messages(at, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))...)
}

func validateTaintRule(s *resourcev1.DeviceTaintRuleSpec) field.ErrorList {
	at := specPath.Child("taint")
	var errs field.ErrorList
	if f := s.DeviceSelector; f != nil {
		where := specPath.Child("deviceSelector")
		if f.Driver != nil {
			errs = append(errs, validateDriver(*f.Driver, where.Child("driver"))...)
		}
		if f.Pool != nil {
			errs = append(errs, validatePool(*f.Pool, where.Child("pool"))...)
		}
		if f.Device != nil {
			errs = append(errs, check.Label(*f.Device, where.Child("device"))...)
		}
	}
	return append(errs, validateTaint(s.Taint, at)...)
}
