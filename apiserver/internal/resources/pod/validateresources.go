package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

var (
	resizable      = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	resizeRestarts = []corev1.ResourceResizeRestartPolicy{corev1.NotRequired, corev1.RestartContainer}
)

// validateClaimsOf validates the use of the pod's claims: each is used as a
// whole, or by some of its requests.
func validateClaimsOf(used []corev1.ResourceClaim, claims []corev1.PodResourceClaim, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	known := sets.New[string]()
	for _, claim := range claims {
		known.Insert(claim.Name)
	}
	parts, whole := map[string]sets.Set[string]{}, sets.New[string]()
	for i, claim := range used {
		path := at.Index(i)
		if claim.Name == "" {
			errs = append(errs, field.Required(path, ""))
			continue
		}
		if claim.Request != "" && !whole.Has(claim.Name) {
			errs = append(errs, check.Messages(path.Child("request"), claim.Request, validation.IsDNS1123Label(claim.Request))...)
		}
		switch before := parts[claim.Name]; {
		case whole.Has(claim.Name), claim.Request == "" && before.Len() > 0:
			errs = append(errs, field.Duplicate(path, claim.Name))
		case before.Has(claim.Request):
			errs = append(errs, field.Duplicate(path, claim.Name+"/"+claim.Request))
		case claim.Request == "":
			whole.Insert(claim.Name)
		case before == nil:
			parts[claim.Name] = sets.New(claim.Request)
		default:
			before.Insert(claim.Request)
		}
		if !known.Has(claim.Name) {
			err := field.NotFound(path, claim.Name)
			err.Detail = "must be one of the names in pod.spec.resourceClaims which is empty"
			if len(known) > 0 {
				err.Detail = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(sets.List(known), ", ")
			}
			errs = append(errs, err)
		}
	}
	return errs
}

// validatePodResources checks that pod-level resources are no less than the
// containers' together, and no container's limit exceeds them. Windows knows none.
func validatePodResources(spec *core.PodSpec, at *field.Path) field.ErrorList {
	r := spec.Resources
	if r == nil {
		return nil
	}
	if spec.OS != nil && spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(at, "may not be set for a windows pod")}
	}
	var errs field.ErrorList
	if r.Claims != nil { // even if it is empty
		errs = append(errs, field.Forbidden(at.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	errs = append(errs, check.Requirements(r, check.PodResource, at)...)
	errs = append(errs, validateClaimsOf(r.Claims, spec.ResourceClaims, at.Child("claims"))...)
	for name, together := range resourcehelper.AggregateContainerRequests(&core.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{}) {
		if whole, ok := r.Requests[name]; ok && together.Cmp(whole) > 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), whole.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", together.String())))
		}
	}
	for name, together := range resourcehelper.AggregateContainerLimits(&core.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{}) {
		if whole, ok := r.Limits[name]; ok && check.IsHugePage(name) && together.Cmp(whole) > 0 {
			errs = append(errs, field.Invalid(at.Child("limits").Key(string(name)), whole.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", together.String())))
		}
	}
	for i := range spec.Containers {
		for name, limit := range spec.Containers[i].Resources.Limits {
			if whole, ok := r.Limits[name]; ok && limit.Cmp(whole) > 0 {
				path := at.Child("containers").Index(i).Key(string(name)).Child("limits")
				errs = append(errs, field.Invalid(path, limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", whole.String())))
			}
		}
	}
	return errs
}

// validateInitResizePolicies refuses to restart init containers on a resize, except sidecars.
// Upstream allowed it until 1.37, so that it is tolerated in pods and templates that are stored.
func validateInitResizePolicies(containers []core.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		if core.IsSidecar(&containers[i]) {
			continue
		}
		for j, p := range containers[i].ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer {
				path := at.Index(i).Child("resizePolicy").Index(j).Child("restartPolicy")
				errs = append(errs, field.Invalid(path, p.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers"))
			}
		}
	}
	return errs
}

func validateResizePolicy(policies []corev1.ContainerResizePolicy, restart corev1.RestartPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceName]()
	for i, p := range policies {
		if seen.Has(p.ResourceName) {
			errs = append(errs, field.Duplicate(at.Index(i), p.ResourceName))
		}
		seen.Insert(p.ResourceName)
		errs = append(errs, check.OneOf(p.ResourceName, at, resizable...)...)
		errs = append(errs, check.OneOf(p.RestartPolicy, at, resizeRestarts...)...)
		if restart == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(at, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}
