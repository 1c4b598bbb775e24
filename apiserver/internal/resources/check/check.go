package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
)

// MaxDataBytes bounds the data of one Secret or ConfigMap.
const MaxDataBytes = 1 << 20

// NotNegative is upstream's message for values below zero.
const NotNegative = apivalidation.IsNegativeErrorMsg

// Immutable is upstream's message for fields that never change.
const Immutable = apivalidation.FieldImmutableErrorMsg

// Messages turns the messages of a validation function into errors on value.
func Messages(path *field.Path, value any, texts []string) field.ErrorList {
	var errs field.ErrorList
	for _, text := range texts {
		errs = append(errs, field.Invalid(path, value, text))
	}
	return errs
}

// Label checks that value is a DNS-1123 label.
func Label(value string, path *field.Path) field.ErrorList {
	return Messages(path, value, LabelProblems(value))
}

// LabelProblems are the reasons why value is not a DNS-1123 label.
func LabelProblems(value string) []string {
	if isDNSLabel(value) {
		return nil
	}
	return validation.IsDNS1123Label(value)
}

// Subdomain checks that value is a DNS-1123 subdomain.
func Subdomain(value string, path *field.Path) field.ErrorList {
	if isDNSSubdomain(value) {
		return nil
	}
	return Messages(path, value, validation.IsDNS1123Subdomain(value))
}

// QualifiedName checks that value is a label key.
func QualifiedName(value string, path *field.Path) field.ErrorList {
	if isLabelKey(value) {
		return nil
	}
	return Messages(path, value, validation.IsQualifiedName(value))
}

// LabelSelector checks the form of a selector, which may be nil.
func LabelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path.Upstream())
}

// Nonnegative checks that value is not below zero.
func Nonnegative(value int64, path *field.Path) field.ErrorList {
	if value < 0 {
		return field.ErrorList{field.Invalid(path, value, NotNegative)}
	}
	return nil
}

// Unchanged checks that a field has not changed.
func Unchanged(now, old any, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(now, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, now, Immutable)}
}

// OneOf checks that a field has one of the allowed values, which the message sorts.
func OneOf[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return Supported(value, at, values...)
}

// OneOfInOrder is OneOf for fields whose message lists the values as they are given.
func OneOfInOrder[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return SupportedInOrder(value, at, values...)
}

// Supported is OneOf for fields whose empty value is unsupported rather than missing.
func Supported[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, slices.Sorted(slices.Values(values)))}
}

// SupportedInOrder is Supported for fields whose message lists the values as they are given.
func SupportedInOrder[T ~string](value T, at *field.Path, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, values)}
}

// NameIsSubdomain is the form of most objects' names. A prefix (generateName)
// may end in a dash.
func NameIsSubdomain(name string, prefix bool) []string {
	if isDNSSubdomain(name) {
		return nil
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// NameIsLabel is the form of names that become part of others.
var NameIsLabel = apivalidation.NameIsDNSLabel

// NameIsSegment checks only that a name can be part of a URL path: names of
// roles contain colons.
func NameIsSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// LessThanOrEqual is upstream's message for values above a bound.
func LessThanOrEqual(most int) string {
	return fmt.Sprintf("must be less than or equal to %d", most)
}

const maxDriverName = 63

// DriverName checks the name of a CSI driver.
func DriverName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if len(name) > maxDriverName {
		errs = append(errs, field.TooLong(at, name, maxDriverName))
	}
	return append(errs, Messages(at, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))...)
}

// Required checks that fields, given as name and value, are set.
func Required(at *field.Path, namesAndValues ...string) field.ErrorList {
	var errs field.ErrorList
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] == "" {
			errs = append(errs, field.Required(at.Child(namesAndValues[i]), ""))
		}
	}
	return errs
}

// RequiredList checks that a list, which is a field of at, has elements.
func RequiredList(at *field.Path, name string, values []string) field.ErrorList {
	if len(values) == 0 {
		return field.ErrorList{field.Required(at.Child(name), "")}
	}
	return nil
}

// NoBacksteps refuses paths that contain "..".
func NoBacksteps(name string, at *field.Path) field.ErrorList {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(at, name, "must not contain '..'")}
		}
	}
	return nil
}

// EmptyForNull replaces null with empty values: protobuf, in which upstream stores
// objects, has only these.
func EmptyForNull(values map[string][]byte) {
	for key, value := range values {
		if value == nil {
			values[key] = []byte{}
		}
	}
}

// NilIfEmpty is nil for an empty list, which is then written as null, however the
// client wrote it: protobuf, in which upstream stores objects, has no empty lists.
func NilIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
