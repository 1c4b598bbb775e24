package pod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// validateClaimStatuses checks that the status is about the pod's own claims.
func validateClaimStatuses(pod *core.Pod, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	claims, seen := map[string]bool{}, map[string]bool{}
	for _, c := range pod.Spec.ResourceClaims {
		claims[c.Name] = true
	}
	for i, status := range pod.Status.ResourceClaimStatuses {
		at := at.Index(i)
		if !claims[status.Name] {
			errs = append(errs, field.Invalid(at.Child("name"), status.Name, "must match the name of an entry in `spec.resourceClaims`"))
		}
		if seen[status.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), status.Name))
		}
		seen[status.Name] = true
		if name := status.ResourceClaimName; name != nil {
			errs = append(errs, check.Subdomain(*name, at.Child("resourceClaimName"))...)
		}
	}
	return errs
}

// validateExtendedClaim validates the claim that a scheduler created for extended
// resources backed by devices (KEP-5004).
func validateExtendedClaim(status *corev1.PodExtendedResourceClaimStatus, spec *core.PodSpec, at *field.Path) field.ErrorList {
	if status == nil {
		return nil
	}
	var errs field.ErrorList
	mappings := at.Child("requestMappings")
	if len(status.RequestMappings) == 0 {
		errs = append(errs, field.Required(mappings, "at least one request mapping is required"))
	}
	containers, seen := containersByName(spec.Containers, spec.InitContainers), map[corev1.ContainerExtendedResourceRequest]bool{}
	for i, m := range status.RequestMappings {
		at := mappings.Index(i)
		if c := containers[m.ContainerName]; c == nil {
			errs = append(errs, field.Invalid(at.Child("containerName"), m.ContainerName,
				"must match the name of an entry in spec.initContainers.name or spec.containers.name"))
		} else if _, asked := c.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !asked {
			errs = append(errs, field.Invalid(at.Child("resourceName"), m.ResourceName,
				"must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"))
		}
		if seen[m] {
			errs = append(errs, field.Duplicate(at.Child("containerName"), m.ContainerName),
				field.Duplicate(at.Child("resourceName"), m.ResourceName),
				field.Duplicate(at.Child("requestName"), m.RequestName))
		}
		seen[m] = true
	}
	for _, m := range status.RequestMappings {
		errs = append(errs, check.Label(m.RequestName, at.Child("requestName"))...) // upstream names no index here
	}
	if status.ResourceClaimName == "" {
		return append(errs, field.Required(at.Child("resourceClaimName"), ""))
	}
	return append(errs, check.Subdomain(status.ResourceClaimName, at.Child("resourceClaimName"))...)
}

// containersByName are the containers by their names, which are unique in a pod that is stored.
func containersByName(groups ...[]corev1.Container) map[string]*corev1.Container {
	containers := map[string]*corev1.Container{}
	for _, group := range groups {
		for i := range group {
			containers[group[i].Name] = &group[i]
		}
	}
	return containers
}

// validateDeviceHealth validates the health of containers' devices, as reported by a
// kubelet (KEP-4680).
func validateDeviceHealth(statuses []corev1.ContainerStatus, containers []corev1.Container, pod *core.PodStatus,
	at *field.Path) field.ErrorList {
	var errs field.ErrorList
	named := containersByName(containers)
	claims := map[string]map[corev1.ResourceClaim]bool{} // by container: a pod may have many of everything
	for i, status := range statuses {
		for j, allocated := range status.AllocatedResourcesStatus {
			at := at.Index(i).Child("allocatedResourcesStatus").Index(j)
			if c := named[status.Name]; c != nil {
				if claims[c.Name] == nil {
					claims[c.Name] = claimsOf(c, pod.ExtendedResourceClaimStatus)
				}
				errs = append(errs, allocatedTo(c, allocated.Name, claims[c.Name], at.Child("name"))...)
			}
			errs = append(errs, validateHealths(allocated.Resources, at.Child("resources"))...)
		}
	}
	return errs
}

// claimsOf are the claims that a container requests, and the requests of the pod's claim for
// its extended resources.
func claimsOf(c *corev1.Container, extended *corev1.PodExtendedResourceClaimStatus) map[corev1.ResourceClaim]bool {
	out := make(map[corev1.ResourceClaim]bool, len(c.Resources.Claims))
	for _, claim := range c.Resources.Claims {
		out[claim] = true
	}
	if extended == nil {
		return out
	}
	for _, m := range extended.RequestMappings {
		if asked := c.Resources.Requests[corev1.ResourceName(m.ResourceName)]; m.ContainerName == c.Name && !asked.IsZero() {
			out[corev1.ResourceClaim{Name: extended.ResourceClaimName, Request: m.RequestName}] = true
		}
	}
	return out
}

// allocatedTo checks that a container has requested the reported resource, or claim's
// request ("claim:NAME/REQUEST").
func allocatedTo(c *corev1.Container, name corev1.ResourceName, claims map[corev1.ResourceClaim]bool, at *field.Path) field.ErrorList {
	claimed, ok := strings.CutPrefix(string(name), "claim:")
	if !ok {
		if _, asked := c.Resources.Requests[name]; asked {
			return nil
		}
		return field.ErrorList{field.Invalid(at, name, "must match one of the container's resource requests")}
	}
	claim, request, _ := strings.Cut(claimed, "/")
	if claims[corev1.ResourceClaim{Name: claim, Request: request}] {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name,
		"must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "+
			"container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")}
}

func validateHealths(resources []corev1.ResourceHealth, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.ResourceID]bool{}
	for i, r := range resources {
		at := at.Index(i)
		errs = append(errs, check.Supported(r.Health, at.Child("health"),
			corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown)...)
		if r.Message != nil && *r.Message == "" {
			errs = append(errs, field.Required(at.Child("message"), "must be non-empty if specified"))
		} else if r.Message != nil && len(*r.Message) > corev1.ResourceHealthMessageMaxLength {
			errs = append(errs, field.TooLong(at.Child("message"), *r.Message, corev1.ResourceHealthMessageMaxLength))
		}
		if seen[r.ResourceID] {
			errs = append(errs, field.Duplicate(at.Child("resourceID"), r.ResourceID))
		}
		seen[r.ResourceID] = true
	}
	return errs
}

// noDeviceHealth refuses device health of ephemeral containers, which have no devices.
func noDeviceHealth(statuses []corev1.ContainerStatus, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, status := range statuses {
		if len(status.AllocatedResourcesStatus) > 0 {
			errs = append(errs, field.Forbidden(at.Index(i).Child("allocatedResourcesStatus"), "must not be specified in container status"))
		}
	}
	return errs
}
