package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

func validateSlice(s *resourcev1.ResourceSliceSpec) field.ErrorList {
	errs := validateDriver(s.Driver, specPath.Child("driver"))
	pool := specPath.Child("pool")
	errs = append(errs, validatePool(s.Pool.Name, pool.Child("name"))...)
	if s.Pool.ResourceSliceCount <= 0 {
		errs = append(errs, field.Invalid(pool.Child("resourceSliceCount"), s.Pool.ResourceSliceCount, "must be greater than zero"))
	}
	if s.Pool.Generation < 0 {
		errs = append(errs, field.Invalid(pool.Child("generation"), s.Pool.Generation, "must be greater than or equal to zero"))
	}
	errs = append(errs, validatePlace(s)...)
	if len(s.Devices) > maxDevices {
		errs = append(errs, field.TooMany(specPath.Child("devices"), len(s.Devices), maxDevices))
	}
	names := sets.New[string]()
	for i := range s.Devices {
		path := specPath.Child("devices").Index(i)
		errs = append(errs, validateDevice(&s.Devices[i], ptr.Deref(s.PerDeviceNodeSelection, false), path)...)
		if names.Has(s.Devices[i].Name) {
			errs = append(errs, field.Duplicate(path, s.Devices[i].Name))
		}
		names.Insert(s.Devices[i].Name)
	}
	return errs
}

// validatePlace checks that a slice says in exactly one way which nodes can use
// its devices.
func validatePlace(s *resourcev1.ResourceSliceSpec) field.ErrorList {
	const oneOf = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	var errs field.ErrorList
	var set []string
	if s.NodeName != nil {
		if *s.NodeName == "" {
			errs = append(errs, field.Invalid(specPath.Child("nodeName"), "", "must be either unset or set to a non-empty string"))
		} else {
			set = append(set, "`nodeName`")
			errs = append(errs, check.Subdomain(*s.NodeName, specPath.Child("nodeName"))...)
		}
	}
	if s.NodeSelector != nil {
		set = append(set, "`nodeSelector`")
		errs = append(errs, validateNodeSelector(s.NodeSelector, specPath.Child("nodeSelector"))...)
	}
	for _, f := range []struct {
		name  string
		value *bool
	}{{"allNodes", s.AllNodes}, {"perDeviceNodeSelection", s.PerDeviceNodeSelection}} {
		if f.value == nil {
			continue
		}
		if !*f.value {
			errs = append(errs, field.Invalid(specPath.Child(f.name), false, "must be either unset or set to true"))
			continue
		}
		set = append(set, "`"+f.name+"`")
	}
	switch len(set) {
	case 0:
		errs = append(errs, field.Required(specPath, oneOf))
	case 1:
	default:
		errs = append(errs, field.Invalid(specPath, "{"+strings.Join(set, ", ")+"}", oneOf+", but multiple fields are set"))
	}
	return errs
}

func validateNodeSelector(s *corev1.NodeSelector, at *field.Path) field.ErrorList {
	terms := at.Child("nodeSelectorTerms")
	var errs field.ErrorList
	if len(s.NodeSelectorTerms) == 0 {
		errs = append(errs, field.Required(terms, "must have at least one node selector term"))
	}
	if len(s.NodeSelectorTerms) != 1 {
		errs = append(errs, field.Invalid(terms, check.Spelled{Value: s.NodeSelectorTerms}, "must have exactly one node selector term"))
	}
	return errs
}

func validateDevice(d *resourcev1.Device, ownNodes bool, at *field.Path) field.ErrorList {
	errs := check.Label(d.Name, at.Child("name"))
	if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		errs = append(errs, field.Invalid(at, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		errs = append(errs, shortName(string(name), at.Child("attributes"))...)
		errs = append(errs, validateAttribute(d.Attributes[name], at.Child("attributes").Key(string(name)))...)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		errs = append(errs, shortName(string(name), at.Child("capacity"))...)
		errs = append(errs, validatePolicy(d.Capacity[name].RequestPolicy, ptr.Deref(d.AllowMultipleAllocations, false), at.Child("capacity").Key(string(name)).Child("requestPolicy"))...)
	}
	if len(d.Taints) > resourcev1.DeviceTaintsMaxLength {
		errs = append(errs, field.TooMany(at.Child("taints"), len(d.Taints), resourcev1.DeviceTaintsMaxLength))
	}
	for i, taint := range d.Taints {
		errs = append(errs, validateTaint(taint, at.Child("taints").Index(i))...)
	}
	switch says := d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil; {
	case says && !ownNodes:
		errs = append(errs, field.Invalid(at, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"))
	case !says && ownNodes:
		errs = append(errs, field.Required(at, "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"))
	}
	return errs
}

// validateAttribute checks that what a driver tells of a device is one value.
func validateAttribute(a resourcev1.DeviceAttribute, at *field.Path) field.ErrorList {
	const kinds = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
	var set []string
	for _, f := range []struct {
		name  string
		isSet bool
	}{
		{"int", a.IntValue != nil}, {"bool", a.BoolValue != nil}, {"string", a.StringValue != nil}, {"version", a.VersionValue != nil},
		{"ints", a.IntValues != nil}, {"bools", a.BoolValues != nil}, {"strings", a.StringValues != nil}, {"versions", a.VersionValues != nil},
	} {
		if f.isSet {
			set = append(set, f.name)
		}
	}
	switch len(set) {
	case 0:
		return field.ErrorList{field.Invalid(at, "", "must specify one of: "+kinds)}
	case 1:
	default:
		return field.ErrorList{field.Invalid(at, "{"+strings.Join(set, ", ")+"}", "must specify exactly one of: "+kinds)}
	}
	longest := resourcev1.DeviceAttributeMaxValueLength
	if a.StringValue != nil && len(*a.StringValue) > longest {
		return field.ErrorList{field.TooLong(at.Child("string"), *a.StringValue, longest)}
	}
	if a.VersionValue == nil {
		return nil
	}
	if len(*a.VersionValue) > longest {
		return field.ErrorList{field.TooLong(at.Child("version"), *a.VersionValue, longest)}
	}
	if _, err := semver.Parse(*a.VersionValue); err != nil {
		return field.ErrorList{field.Invalid(at.Child("version"), *a.VersionValue, "must be a string compatible with semver.org spec 2.0.0")}
	}
	return nil
}

// validatePolicy checks which parts of a capacity may be asked for: only what several
// share has parts.
func validatePolicy(p *resourcev1.CapacityRequestPolicy, shared bool, at *field.Path) field.ErrorList {
	switch {
	case p == nil:
	case !shared:
		return field.ErrorList{field.Forbidden(at, "allowMultipleAllocations must be true")}
	case len(p.ValidValues) > 0 && p.ValidRange != nil:
		return field.ErrorList{field.Forbidden(at, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case p.Default == nil && len(p.ValidValues) > 0:
		return field.ErrorList{field.Required(at.Child("default"), "required when validValues is defined")}
	case p.Default == nil && p.ValidRange != nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validRange is defined")}
	case p.ValidRange != nil && p.ValidRange.Min == nil:
		return field.ErrorList{field.Required(at.Child("validRange", "min"), "required when validRange is defined")}
	}
	return nil
}
