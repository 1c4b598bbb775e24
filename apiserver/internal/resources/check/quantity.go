package check

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
)

const notInteger = "must be an integer"

// IsHugePage reports whether name is hugepages-<size>.
func IsHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// IsNative reports whether name belongs to Kubernetes itself: it has no domain,
// or one under kubernetes.io.
func IsNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// IsExtended reports whether name is a resource that a device plugin or an
// operator adds to nodes.
func IsExtended(name corev1.ResourceName) bool {
	if IsNative(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// IsOvercommit reports whether requests of name may be below its limits.
func IsOvercommit(name corev1.ResourceName) bool { return IsNative(name) && !IsHugePage(name) }

// RoundUpQuantities rounds amounts up to a thousandth, as upstream does in all that holds
// such lists.
func RoundUpQuantities(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, amount := range list {
			if !amount.RoundUp(-3) {
				list[name] = amount
			}
		}
	}
}

// Quantity checks the amount of one resource: not negative, and whole if the
// resource is indivisible.
func Quantity(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.Cmp(resource.Quantity{}) < 0 {
		errs = append(errs, field.Invalid(path, q.String(), NotNegative))
	}
	if (IsExtended(name) || countableResources.Has(name)) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q, notInteger))
	}
	return errs
}

// ContainerResource checks the name of a resource that a container requests.
func ContainerResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := resourceName(name, path)
	switch {
	case !strings.Contains(string(name), "/"):
		if !containerResources[name] && !IsHugePage(name) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !IsNative(name) && !IsExtended(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// containerResources are the names without a domain that containers can request, besides
// huge pages.
var containerResources = map[corev1.ResourceName]bool{
	corev1.ResourceCPU: true, corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true,
}

// HasFractionalBytes reports whether the amount of name is a fractional number of bytes.
func HasFractionalBytes(amounts corev1.ResourceList, name corev1.ResourceName) bool {
	amount, ok := amounts[name]
	return ok && amount.MilliValue()%1000 != 0
}

// FractionalBytesWarning is the warning for HasFractionalBytes.
func FractionalBytesWarning(at string, amounts corev1.ResourceList, name corev1.ResourceName) string {
	amount := amounts[name]
	return fmt.Sprintf("%s[%s]: fractional byte value %q is invalid, must be an integer", at, name, amount.String())
}

// ClaimWarnings are the warnings for the spec of a claim or of a claim template.
func ClaimWarnings(s *corev1.PersistentVolumeClaimSpec, at string) []string {
	var out []string
	for _, of := range []struct {
		name    string
		amounts corev1.ResourceList
	}{{"requests", s.Resources.Requests}, {"limits", s.Resources.Limits}} {
		if HasFractionalBytes(of.amounts, corev1.ResourceStorage) {
			out = append(out, FractionalBytesWarning(at+".resources."+of.name, of.amounts, corev1.ResourceStorage))
		}
	}
	return out
}
