package device

import (
	"bytes"
	"encoding/json"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// validatePool validates a pool's name: domain names separated by slashes.
func validatePool(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(at, name, resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, check.Subdomain(part, at)...)
	}
	return errs
}

// validateQualifiedName validates the name of an attribute or of a capacity, which is
// the driver's own without a domain. Two slashes are accepted, too.
func validateQualifiedName(name string, at *field.Path) field.ErrorList {
	domain, id, found := strings.Cut(name, "/")
	switch {
	case !found:
		return validateIdentifier(name, at)
	case strings.Contains(id, "/"):
		return nil
	}
	var errs field.ErrorList
	if domain == "" {
		errs = append(errs, field.Invalid(at, "", "the domain must not be empty"))
	} else {
		errs = append(errs, check.DriverName(domain, at)...)
	}
	if id == "" {
		return append(errs, field.Invalid(at, "", "the name must not be empty"))
	}
	return append(errs, validateIdentifier(id, at)...)
}

func validateIdentifier(id string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(at, id, resourcev1.DeviceMaxIDLength))
	}
	return append(errs, check.Messages(at, id, validation.IsCIdentifier(id))...)
}

// truncateKey is a map's key in a path: upstream shortens long ones in the middle.
func truncateKey(key string) string {
	const most, dots = resourcev1.DeviceMaxDomainLength + 1 + resourcev1.DeviceMaxIDLength, "..."
	if len(key) <= most {
		return key
	}
	left := most - len(dots)
	return key[:(left+1)/2] + dots + key[len(key)-left/2:]
}

func validateTaint(t resourcev1.DeviceTaint, at *field.Path) field.ErrorList {
	errs := check.QualifiedName(t.Key, at.Child("key"))
	if t.Value != "" {
		errs = append(errs, check.Messages(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	}
	return append(errs, check.OneOf(t.Effect, at.Child("effect"), effects...)...)
}

var effects = []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule,
	resourcev1.DeviceTaintEffectNone}

func validateDeclaredTolerations(tolerations []resourcev1.DeviceToleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		path := at.Index(i)
		if t.Key != "" {
			errs = append(errs, check.Declared(t.Key, path.Child("key"), validate.LabelKey)...)
		}
		errs = append(errs, check.OneOf(t.Operator, path.Child("operator"),
			resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists)...)
		if t.Effect != "" {
			errs = append(errs, check.Supported(t.Effect, path.Child("effect"), effects...)...)
		}
	}
	return errs
}

// validateTolerationValues validates the values of tolerated taints.
func validateTolerationValues(tolerations []resourcev1.DeviceToleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		value := at.Index(i).Child("value")
		switch {
		case t.Operator == resourcev1.DeviceTolerationOpExists && t.Value != "":
			errs = append(errs, field.Invalid(value, t.Value, "must be empty for operator `Exists`"))
		case t.Operator == resourcev1.DeviceTolerationOpEqual:
			errs = append(errs, check.Messages(value, t.Value, validation.IsValidLabelValue(t.Value))...)
		}
	}
	return errs
}

// validateConfiguration validates configuration for a driver, which only the driver
// understands.
func validateConfiguration(c resourcev1.DeviceConfiguration, at *field.Path) field.ErrorList {
	opaque := at.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(opaque, "")}
	}
	errs := check.NamedDriver(c.Opaque.Driver, opaque.Child("driver"))
	return append(errs, validateObject(c.Opaque.Parameters.Raw, resourcev1.OpaqueParametersMaxLength, opaque.Child("parameters"))...)
}

func validateObject(raw []byte, most int, at *field.Path) field.ErrorList {
	var value any
	switch {
	case len(raw) == 0:
		return field.ErrorList{field.Required(at, "")}
	case len(raw) > most:
		return field.ErrorList{field.TooLong(at, "", most)}
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return field.ErrorList{field.Invalid(at, "<value omitted>", "error parsing data as JSON: "+err.Error())}
	}
	if value == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if _, is := value.(map[string]any); !is {
		return field.ErrorList{field.Invalid(at, "<value omitted>", "must be a valid JSON object")}
	}
	return nil
}

// compact writes a driver's parameters in their stored form, without
// insignificant space.
func compact(parameters *runtime.RawExtension) {
	var b bytes.Buffer
	if len(parameters.Raw) > 0 && json.Compact(&b, parameters.Raw) == nil {
		parameters.Raw = b.Bytes()
	}
}
