package check

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/field"
)

// quotaResources are the names without a domain that a quota can limit, besides
// huge pages.
var quotaResources = sets.New(
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage, corev1.ResourceRequestsEphemeralStorage,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
)

// countableResources are the names of countable resources.
var countableResources = sets.New(
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
)

// IsStandardForQuota reports whether name has no domain and a quota can limit
// it.
func IsStandardForQuota(name corev1.ResourceName) bool {
	return quotaResources.Has(name) || IsHugePage(name) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// resourceName checks the name of any resource.
func resourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := QualifiedName(string(name), path)
	if len(errs) == 0 && !strings.Contains(string(name), "/") && !IsStandardForQuota(name) && name != corev1.ResourceStorage {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

// QuotaResource checks the name of a resource that a quota limits.
func QuotaResource(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := resourceName(name, path)
	if !strings.Contains(string(name), "/") && !IsStandardForQuota(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for quota"))
	}
	return errs
}

// LimitedResource checks the name of a resource in a limit range: for
// containers and pods, one that containers can request.
func LimitedResource(name corev1.ResourceName, byContainers bool, path *field.Path) field.ErrorList {
	if byContainers {
		return ContainerResource(name, path)
	}
	return resourceName(name, path)
}
