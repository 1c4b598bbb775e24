package device

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// validateDevice validates a device; old is the slice's earlier one, or nil.
func validateDevice(d, old *resourcev1.Device, ownNodes bool, at *field.Path) field.ErrorList {
	errs := check.Label(d.Name, at.Child("name"))
	errs = append(errs, validateAttributes(d, at)...)
	if old == nil || !equality.Semantic.DeepEqual(old.Capacity, d.Capacity) {
		path := at.Child("capacity")
		for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
			errs = append(errs, validateQualifiedName(string(name), path)...)
			errs = append(errs, validatePolicy(d.Capacity[name], ptr.Deref(d.AllowMultipleAllocations, false),
				path.Key(truncateKey(string(name))).Child("requestPolicy"))...)
		}
	}
	if old == nil || !equality.Semantic.DeepEqual(old.Taints, d.Taints) {
		path := at.Child("taints")
		if len(d.Taints) > resourcev1.DeviceTaintsMaxLength {
			errs = append(errs, field.TooMany(path, len(d.Taints), resourcev1.DeviceTaintsMaxLength))
		} else {
			for i, taint := range d.Taints {
				errs = append(errs, validateTaint(taint, path.Index(i))...)
			}
		}
	}
	errs = append(errs, validateConsumptions(d.ConsumesCounters, at.Child("consumesCounters"))...)
	errs = append(errs, validateOwnNodes(d, ownNodes, at)...)
	return append(errs, validateBinding(d.BindingConditions, d.BindingFailureConditions, at)...)
}

func validateConsumptions(all []resourcev1.DeviceCounterConsumption, at *field.Path) field.ErrorList {
	if long := check.MaxItems(all, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, at); len(long) > 0 {
		return long
	}
	errs := check.Unique(all, at, func(item *resourcev1.DeviceCounterConsumption) string { return item.CounterSet })
	for i, c := range all {
		errs = append(errs, validateCounters("counterSet", c.CounterSet, c.Counters,
			resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption, at.Index(i))...)
	}
	return errs
}

// validateOwnNodes validates which nodes can use a device, if each device says so.
func validateOwnNodes(d *resourcev1.Device, ownNodes bool, at *field.Path) field.ErrorList {
	if !ownNodes {
		if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
			return field.ErrorList{field.Invalid(at, nil,
				"`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")}
		}
		return nil
	}
	const oneOf = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to " +
		"true in the ResourceSlice spec"
	errs, set := validateNodes(d.NodeName, d.NodeSelector, d.AllNodes, "must not be empty", at)
	switch len(set) {
	case 0:
		errs = append(errs, field.Required(at, oneOf))
	case 1:
	default:
		errs = append(errs, field.Invalid(at, "{"+strings.Join(set, ", ")+"}", oneOf))
	}
	return errs
}

func validateAttributes(d *resourcev1.Device, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n, most := len(d.Attributes)+len(d.Capacity), resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice; n > most {
		errs = append(errs, field.Invalid(at, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", most)))
	}
	values := 0
	path := at.Child("attributes")
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		a := d.Attributes[name]
		values += max(1, len(a.BoolValues)+len(a.IntValues)+len(a.StringValues)+len(a.VersionValues))
		errs = append(errs, validateQualifiedName(string(name), path)...)
		errs = append(errs, validateAttribute(a, path.Key(truncateKey(string(name))))...)
	}
	if most := resourcev1.ResourceSliceMaxAttributeValuesPerDevice; values > most {
		errs = append(errs, field.Invalid(at, values, fmt.Sprintf("the total number of attribute values must not exceed %d", most)))
	}
	return errs
}

// validateAttribute checks that a device's attribute is one value, or one list of
// values.
func validateAttribute(a resourcev1.DeviceAttribute, at *field.Path) field.ErrorList {
	const kinds = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
	var errs field.ErrorList
	var set []string
	for _, f := range []struct {
		name  string
		isSet bool
		empty bool
	}{
		{"int", a.IntValue != nil, false}, {"bool", a.BoolValue != nil, false},
		{"string", a.StringValue != nil, false}, {"version", a.VersionValue != nil, false},
		{"ints", a.IntValues != nil, len(a.IntValues) == 0}, {"bools", a.BoolValues != nil, len(a.BoolValues) == 0},
		{"strings", a.StringValues != nil, len(a.StringValues) == 0}, {"versions", a.VersionValues != nil, len(a.VersionValues) == 0},
	} {
		if f.isSet {
			set = append(set, f.name)
		}
		if f.isSet && f.empty {
			errs = append(errs, field.Invalid(at.Child(f.name), []string{}, "must not be empty if specified"))
		}
	}
	switch len(set) {
	case 0:
		errs = append(errs, field.Invalid(at, "", "must specify one of: "+kinds))
	case 1:
	default:
		errs = append(errs, field.Invalid(at, "{"+strings.Join(set, ", ")+"}", "must specify exactly one of: "+kinds))
	}
	if a.StringValue != nil {
		errs = append(errs, validateAttributeText(*a.StringValue, at.Child("string"))...)
	}
	if a.VersionValue != nil {
		errs = append(errs, validateAttributeVersion(*a.VersionValue, at.Child("version"))...)
	}
	for i, text := range a.StringValues {
		errs = append(errs, validateAttributeText(text, at.Child("strings").Index(i))...)
	}
	for i, text := range a.VersionValues {
		errs = append(errs, validateAttributeVersion(text, at.Child("versions").Index(i))...)
	}
	return errs
}

func validateAttributeText(text string, at *field.Path) field.ErrorList {
	if len(text) > resourcev1.DeviceAttributeMaxValueLength {
		return field.ErrorList{field.TooLong(at, text, resourcev1.DeviceAttributeMaxValueLength)}
	}
	return nil
}

// versions are like "1.2.3-rc.1+linux" (semver.org, 2.0.0), of numbers of any size.
var versions = func() *regexp.Regexp {
	const number, word = `(0|[1-9]\d*)`, `[\dA-Za-z-]+`
	const part = `(0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)`
	return regexp.MustCompile(`^` + number + `(\.` + number + `){2}(-` + part + `(\.` + part + `)*)?(\+` + word + `(\.` + word + `)*)?$`)
}()

func validateAttributeVersion(text string, at *field.Path) field.ErrorList {
	errs := validateAttributeText(text, at)
	if !versions.MatchString(text) {
		errs = append(errs, field.Invalid(at, text, "must be a string compatible with semver.org spec 2.0.0"))
	}
	return errs
}
