package device

import (
	"bytes"
	"encoding/json"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// Upstream's bounds of names.
const (
	maxPoolName = 253
	maxShort    = resourcev1.DeviceMaxIDLength
	maxDomain   = resourcev1.DeviceMaxDomainLength
)

// validatePool checks a pool's name: parts like those of a domain, with slashes
// between.
func validatePool(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if len(name) > maxPoolName {
		errs = append(errs, field.TooLong(at, name, maxPoolName))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, check.Subdomain(part, at)...)
	}
	return errs
}

// fullName checks the name of an attribute that says whose it is.
func fullName(name string, at *field.Path) field.ErrorList {
	errs := shortName(name, at)
	if !strings.Contains(name, "/") {
		errs = append(errs, field.Invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash"))
	}
	return errs
}

// shortName checks the name of an attribute or of a capacity, which is the
// driver's own where it names no domain.
func shortName(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	id := name
	if domain, rest, found := strings.Cut(name, "/"); found {
		id = rest
		if len(domain) > maxDomain {
			errs = append(errs, field.TooLong(at, domain, maxDomain))
		}
		for _, text := range validation.IsDNS1123Subdomain(domain) {
			errs = append(errs, field.Invalid(at, domain, "prefix: "+text))
		}
	}
	if len(id) > maxShort {
		return append(errs, field.TooLong(at, id, maxShort))
	}
	return append(errs, check.Messages(at, id, validation.IsCIdentifier(id))...)
}

func validateTaint(t resourcev1.DeviceTaint, at *field.Path) field.ErrorList {
	errs := check.QualifiedName(t.Key, at.Child("key"))
	if t.Value != "" {
		errs = append(errs, check.Messages(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	}
	return append(errs, check.OneOf(t.Effect, at.Child("effect"), effects...)...)
}

var effects = []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone}

func validateTolerations(tolerations []resourcev1.DeviceToleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		path := at.Index(i)
		if t.Key != "" {
			errs = append(errs, check.QualifiedName(t.Key, path.Child("key"))...)
		}
		switch t.Operator {
		case resourcev1.DeviceTolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(path.Child("value"), t.Value, "must be empty for operator `Exists`"))
			}
		case resourcev1.DeviceTolerationOpEqual:
			errs = append(errs, check.Messages(path.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		default:
			errs = append(errs, check.Supported(t.Operator, path.Child("operator"), resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists)...)
		}
		if t.Effect != "" {
			errs = append(errs, check.Supported(t.Effect, path.Child("effect"), effects...)...)
		}
	}
	return errs
}

// validateConfiguration checks what is only the driver's to understand.
func validateConfiguration(c resourcev1.DeviceConfiguration, at *field.Path) field.ErrorList {
	opaque := at.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(opaque, "")}
	}
	errs := validateDriver(c.Opaque.Driver, opaque.Child("driver"))
	raw, parameters := c.Opaque.Parameters.Raw, opaque.Child("parameters")
	var object map[string]any
	switch {
	case len(raw) == 0:
		errs = append(errs, field.Required(parameters, ""))
	case len(raw) > resourcev1.OpaqueParametersMaxLength:
		errs = append(errs, field.TooLong(parameters, "", resourcev1.OpaqueParametersMaxLength))
	case json.Unmarshal(raw, &object) != nil:
		errs = append(errs, field.Invalid(parameters, "<value omitted>", "must be a valid JSON object"))
	}
	return errs
}

// compact writes a driver's parameters as they are stored: they are the same
// however much space a client put between them.
func compact(parameters *runtime.RawExtension) {
	var b bytes.Buffer
	if len(parameters.Raw) > 0 && json.Compact(&b, parameters.Raw) == nil {
		parameters.Raw = b.Bytes()
	}
}

// validateExtended checks the name under which containers ask for a class like
// for any other resource.
func validateExtended(name string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case !strings.Contains(name, "/"):
		errs = append(errs, field.Invalid(at, name, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"))
	case strings.HasPrefix(name, "requests."):
		return field.ErrorList{field.Invalid(at, name, `must not have "requests." prefix`)}
	case strings.Contains(name, "kubernetes.io/"):
		return field.ErrorList{field.Invalid(at, name, `must not have "kubernetes.io/" domain`)}
	}
	return append(errs, check.QualifiedName(name, at)...)
}
