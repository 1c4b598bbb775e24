package device

import (
	"context"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

func validateClaim(ctx context.Context, s *resourcev1.ResourceClaimSpec, at *field.Path) field.ErrorList {
	devices := at.Child("devices")
	errs := validateRequests(ctx, s.Devices.Requests, devices.Child("requests"))
	names := requestNames(s)
	constraints := devices.Child("constraints")
	if long := check.MaxItems(s.Devices.Constraints, resourcev1.DeviceConstraintsMaxSize, constraints); len(long) > 0 {
		errs = append(errs, long...)
	} else {
		for i, c := range s.Devices.Constraints {
			errs = append(errs, validateConstraint(c, names, constraints.Index(i))...)
		}
	}
	config := devices.Child("config")
	if long := check.MaxItems(s.Devices.Config, resourcev1.DeviceConfigMaxSize, config); len(long) > 0 {
		return append(errs, long...)
	}
	for i, c := range s.Devices.Config {
		errs = append(errs, validateRequestReferences(c.Requests, names, config.Index(i).Child("requests"))...)
		errs = append(errs, validateConfiguration(c.DeviceConfiguration, config.Index(i))...)
	}
	return errs
}

func validateRequests(ctx context.Context, requests []resourcev1.DeviceRequest, at *field.Path) field.ErrorList {
	if long := check.MaxItems(requests, resourcev1.DeviceRequestsMaxSize, at); len(long) > 0 {
		return long
	}
	errs := check.Unique(requests, at, func(item *resourcev1.DeviceRequest) string { return item.Name })
	for i := range requests {
		r, path := &requests[i], at.Index(i)
		errs = append(errs, check.Label(r.Name, path.Child("name"))...)
		one := r.Exactly == nil || len(r.FirstAvailable) == 0
		switch {
		case !one:
			errs = append(errs, field.Invalid(path, nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"))
		case r.Exactly == nil && len(r.FirstAvailable) == 0:
			errs = append(errs, field.Required(path, "exactly one of `exactly` or `firstAvailable` is required"))
		}
		if e := r.Exactly; e != nil {
			wish := deviceRequest{e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Tolerations}
			errs = append(errs, wish.declared(path.Child("exactly"))...)
			if one {
				errs = append(errs, validateClassName(e.DeviceClassName, path.Child("exactly", "deviceClassName"))...)
				errs = append(errs, wish.validate(ctx, path.Child("exactly"))...)
			}
		}
		errs = append(errs, validateAlternatives(ctx, r.FirstAvailable, one, path.Child("firstAvailable"))...)
	}
	return errs
}

// validateAlternatives validates a request's alternatives, of which the first available one
// is used. If a request also has an exact one, only declared constraints are checked.
func validateAlternatives(ctx context.Context, all []resourcev1.DeviceSubRequest, alone bool, at *field.Path) field.ErrorList {
	if long := check.MaxItems(all, resourcev1.FirstAvailableDeviceRequestMaxSize, at); len(long) > 0 {
		return long
	}
	errs := check.Unique(all, at, func(item *resourcev1.DeviceSubRequest) string { return item.Name })
	for i, r := range all {
		path := at.Index(i)
		if r.DeviceClassName == "" {
			errs = append(errs, field.Required(path.Child("deviceClassName"), ""))
		} else {
			errs = append(errs, check.Declared(r.DeviceClassName, path.Child("deviceClassName"), validate.LongName)...)
		}
		wish := deviceRequest{r.DeviceClassName, r.Selectors, r.AllocationMode, r.Count, r.Tolerations}
		errs = append(errs, wish.declared(path)...)
		if alone {
			errs = append(errs, check.Label(r.Name, path.Child("name"))...)
			errs = append(errs, wish.validate(ctx, path)...)
		}
	}
	return errs
}

// deviceRequest is common to both kinds of requests.
type deviceRequest struct {
	class       string
	selectors   []resourcev1.DeviceSelector
	mode        resourcev1.DeviceAllocationMode
	count       int64
	tolerations []resourcev1.DeviceToleration
}

func (w deviceRequest) declared(at *field.Path) field.ErrorList {
	errs := check.MaxItems(w.selectors, resourcev1.DeviceSelectorsMaxSize, at.Child("selectors"))
	errs = append(errs, check.Supported(w.mode, at.Child("allocationMode"),
		resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount)...)
	return append(errs, validateDeclaredTolerations(w.tolerations, at.Child("tolerations"))...)
}

func (w deviceRequest) validate(ctx context.Context, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(w.selectors) <= resourcev1.DeviceSelectorsMaxSize {
		errs = validateSelectors(ctx, w.selectors, at.Child("selectors"))
	}
	count := at.Child("count")
	switch {
	case w.mode == resourcev1.DeviceAllocationModeAll && w.count != 0:
		errs = append(errs, field.Invalid(count, w.count, "must not be specified when allocationMode is 'All'"))
	case w.mode == resourcev1.DeviceAllocationModeExactCount && w.count <= 0:
		errs = append(errs, field.Invalid(count, w.count, "must be greater than zero"))
	}
	return append(errs, validateTolerationValues(w.tolerations, at.Child("tolerations"))...)
}

func validateClassName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return check.Messages(at, name, check.NameIsSubdomain(name, false))
}

func validateConstraint(c resourcev1.DeviceConstraint, names sets.Set[string], at *field.Path) field.ErrorList {
	errs := validateRequestReferences(c.Requests, names, at.Child("requests"))
	if c.MatchAttribute == nil && c.DistinctAttribute == nil {
		return append(errs, field.Required(at, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
	}
	if name := c.MatchAttribute; name != nil {
		errs = append(errs, check.Declared(*name, at.Child("matchAttribute"), validate.ResourceFullyQualifiedName)...)
	}
	if name := c.DistinctAttribute; name != nil {
		errs = append(errs, check.Declared(*name, at.Child("distinctAttribute"), validate.ResourceFullyQualifiedName)...)
	}
	return errs
}

// requestNames are the names of a claim's requests and their alternatives.
func requestNames(s *resourcev1.ResourceClaimSpec) sets.Set[string] {
	names := sets.New[string]()
	for _, r := range s.Devices.Requests {
		names.Insert(r.Name)
		for _, alternative := range r.FirstAvailable {
			names.Insert(r.Name + "/" + alternative.Name)
		}
	}
	return names
}

// validateRequestReferences checks that references are to requests of the claim.
func validateRequestReferences(requests []string, names sets.Set[string], at *field.Path) field.ErrorList {
	if long := check.MaxItems(requests, resourcev1.DeviceRequestsMaxSize, at); len(long) > 0 {
		return long
	}
	errs := check.Unique(requests, at, check.Itself)
	for i, name := range requests {
		errs = append(errs, validateRequestReference(name, names, at.Index(i))...)
	}
	return errs
}

func validateRequestReference(name string, names sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	parts := strings.Split(name, "/")
	if len(parts) <= 2 {
		for _, part := range parts {
			errs = append(errs, check.Label(part, at)...)
		}
	}
	if len(parts) > 2 || !names.Has(name) {
		errs = append(errs, field.Invalid(at, name,
			"must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"))
	}
	return errs
}

// validateSelectors validates selectors, limited in number and for as long as the
// request lasts: regular expressions in them can take half a second each.
func validateSelectors(ctx context.Context, selectors []resourcev1.DeviceSelector, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range selectors {
		path := at.Index(i).Child("cel")
		switch {
		case ctx.Err() != nil:
			return append(errs, field.InternalError(at, ctx.Err()))
		case s.CEL == nil:
			errs = append(errs, field.Required(path, ""))
		case len(s.CEL.Expression) > resourcev1.CELSelectorExpressionMaxLength:
			errs = append(errs, field.TooLong(path.Child("expression"), "", resourcev1.CELSelectorExpressionMaxLength))
		default:
			if err := validateSelector(s.CEL.Expression, path.Child("expression")); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

func validateClass(ctx context.Context, s *resourcev1.DeviceClassSpec) field.ErrorList {
	selectors, config := specPath.Child("selectors"), specPath.Child("config")
	errs := check.MaxItems(s.Selectors, resourcev1.DeviceSelectorsMaxSize, selectors)
	if len(errs) == 0 {
		errs = validateSelectors(ctx, s.Selectors, selectors)
	}
	if long := check.MaxItems(s.Config, resourcev1.DeviceConfigMaxSize, config); len(long) > 0 {
		errs = append(errs, long...)
	} else {
		for i, c := range s.Config {
			errs = append(errs, validateConfiguration(c.DeviceConfiguration, config.Index(i))...)
		}
	}
	if name := s.ExtendedResourceName; name != nil {
		errs = append(errs, check.Declared(*name, specPath.Child("extendedResourceName"), validate.ExtendedResourceName)...)
	}
	return errs
}

func validateTaintRule(s *resourcev1.DeviceTaintRuleSpec) field.ErrorList {
	var errs field.ErrorList
	if f := s.DeviceSelector; f != nil {
		where := specPath.Child("deviceSelector")
		if f.Driver != nil {
			errs = append(errs, check.DriverName(*f.Driver, where.Child("driver"))...)
		}
		if f.Pool != nil {
			errs = append(errs, validatePool(*f.Pool, where.Child("pool"))...)
		}
		if f.Device != nil {
			errs = append(errs, check.Label(*f.Device, where.Child("device"))...)
		}
	}
	return append(errs, validateTaint(s.Taint, specPath.Child("taint"))...)
}
