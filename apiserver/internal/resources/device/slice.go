package device

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
)

// dropDisabledSliceFields drops fields of disabled alpha features, unless they were set before.
func dropDisabledSliceFields(s, old *resourcev1.ResourceSlice) {
	if old == nil {
		old = &resourcev1.ResourceSlice{}
	}
	drop := func(uses func(d *resourcev1.Device) bool, from func(d *resourcev1.Device)) {
		if slices.ContainsFunc(old.Spec.Devices, func(d resourcev1.Device) bool { return uses(&d) }) {
			return
		}
		for i := range s.Spec.Devices {
			from(&s.Spec.Devices[i])
		}
	}
	if old.Spec.PartitionTypeAttribute == nil {
		s.Spec.PartitionTypeAttribute = nil
	}
	if len(old.Spec.SkipNodeOperations) == 0 {
		s.Spec.SkipNodeOperations = nil
	}
	drop(func(d *resourcev1.Device) bool { return len(d.NodeAllocatableResources) > 0 },
		func(d *resourcev1.Device) { d.NodeAllocatableResources = nil })
	drop(func(d *resourcev1.Device) bool {
		return slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
	}, func(d *resourcev1.Device) {
		for i := range d.ConsumesCounters {
			d.ConsumesCounters[i].CompatibilityGroups = nil
		}
	})
	drop(hasListAttribute, func(d *resourcev1.Device) {
		for name, a := range d.Attributes {
			a.BoolValues, a.IntValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
			d.Attributes[name] = a
		}
	})
}

// hasListAttribute: an attribute of the device has several values.
func hasListAttribute(d *resourcev1.Device) bool {
	for _, a := range d.Attributes {
		if a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil {
			return true
		}
	}
	return false
}

// validateSlice validates a slice; old is the earlier one, or nil.
func validateSlice(s, old *resourcev1.ResourceSliceSpec) field.ErrorList {
	errs := check.DriverName(s.Driver, specPath.Child("driver"))
	pool := specPath.Child("pool")
	errs = append(errs, validatePool(s.Pool.Name, pool.Child("name"))...)
	if s.Pool.ResourceSliceCount <= 0 {
		errs = append(errs, field.Invalid(pool.Child("resourceSliceCount"), s.Pool.ResourceSliceCount, "must be greater than zero"))
	}
	if s.Pool.Generation < 0 {
		errs = append(errs, field.Invalid(pool.Child("generation"), s.Pool.Generation, "must be greater than or equal to zero"))
	}
	errs = append(errs, validateNodeSelection(s)...)
	if s.SharedCounters != nil && s.Devices != nil {
		errs = append(errs, field.Invalid(specPath, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	errs = append(errs, validateCounterSets(s.SharedCounters, specPath.Child("sharedCounters"))...)
	return append(errs, validateDevices(s, old, specPath.Child("devices"))...)
}

func validateDevices(s, old *resourcev1.ResourceSliceSpec, at *field.Path) field.ErrorList {
	most := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(s.Devices, func(d resourcev1.Device) bool {
		return len(d.Taints) > 0 || len(d.ConsumesCounters) > 0 || hasListAttribute(&d)
	}) {
		most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	if len(s.Devices) > most {
		return field.ErrorList{field.TooMany(at, len(s.Devices), most)}
	}
	before := map[string]*resourcev1.Device{}
	if old != nil {
		for i := range old.Devices {
			before[old.Devices[i].Name] = &old.Devices[i]
		}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range s.Devices {
		d, path := &s.Devices[i], at.Index(i)
		errs = append(errs, validateDevice(d, before[d.Name], ptr.Deref(s.PerDeviceNodeSelection, false), path)...)
		if seen[d.Name] {
			errs = append(errs, field.Duplicate(path, d.Name))
		}
		seen[d.Name] = true
	}
	return errs
}

// validateNodeSelection checks that a slice specifies in exactly one way which nodes
// can use its devices.
func validateNodeSelection(s *resourcev1.ResourceSliceSpec) field.ErrorList {
	const oneOf = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	errs, set := validateNodes(s.NodeName, s.NodeSelector, s.AllNodes, "must be either unset or set to a non-empty string", specPath)
	if terms := specPath.Child("nodeSelector", "nodeSelectorTerms"); s.NodeSelector != nil && len(s.NodeSelector.NodeSelectorTerms) != 1 {
		errs = append(errs, field.Invalid(terms, check.GoFieldNames{Value: s.NodeSelector.NodeSelectorTerms},
			"must have exactly one node selector term"))
	}
	if each := s.PerDeviceNodeSelection; each != nil && *each {
		set = append(set, "`perDeviceNodeSelection`")
	} else if each != nil {
		errs = append(errs, field.Invalid(specPath.Child("perDeviceNodeSelection"), false, "must be either unset or set to true"))
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

// validateNodes validates which nodes are meant, and returns the ways in which they are
// specified.
func validateNodes(name *string, selector *corev1.NodeSelector, all *bool, nameless string, at *field.Path) (field.ErrorList, []string) {
	var errs field.ErrorList
	var set []string
	switch {
	case name == nil:
	case *name == "":
		errs = append(errs, field.Invalid(at.Child("nodeName"), "", nameless))
	default:
		set = append(set, "`nodeName`")
		errs = append(errs, check.Subdomain(*name, at.Child("nodeName"))...)
	}
	if selector != nil {
		set = append(set, "`nodeSelector`")
		errs = append(errs, pod.ValidateNodeSelector(selector, at.Child("nodeSelector"))...)
	}
	switch {
	case all == nil:
	case *all:
		set = append(set, "`allNodes`")
	default:
		errs = append(errs, field.Invalid(at.Child("allNodes"), false, "must be either unset or set to true"))
	}
	return errs, set
}

func validateCounterSets(all []resourcev1.CounterSet, at *field.Path) field.ErrorList {
	if long := check.MaxItems(all, resourcev1.ResourceSliceMaxCounterSets, at); len(long) > 0 {
		return long
	}
	errs := check.Unique(all, at, func(item *resourcev1.CounterSet) string { return item.Name })
	for i, s := range all {
		errs = append(errs, validateCounters("name", s.Name, s.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet, at.Index(i))...)
	}
	return errs
}

// validateCounters validates a set of counters, and its name in the given field.
func validateCounters(by, name string, counters map[string]resourcev1.Counter, most int, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(at.Child(by), ""))
	} else {
		errs = append(errs, check.ShortName(name, at.Child(by))...)
	}
	path := at.Child("counters")
	switch n := len(counters); {
	case n == 0:
		errs = append(errs, field.Required(path, ""))
	case n > most:
		errs = append(errs, field.TooMany(path, n, most))
	}
	for _, counter := range slices.Sorted(maps.Keys(counters)) {
		errs = append(errs, check.ShortName(counter, path)...)
	}
	return errs
}
