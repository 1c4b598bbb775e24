package service

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// validateBalancer is about what only services with a load balancer have.
func validateBalancer(s *corev1.Service, at *field.Path) field.ErrorList {
	spec := &s.Spec
	var errs field.ErrorList
	balanced := spec.Type == corev1.ServiceTypeLoadBalancer
	health := at.Child("healthCheckNodePort")
	switch {
	case spec.HealthCheckNodePort == 0:
	case !balanced || spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal:
		errs = append(errs, field.Invalid(health, spec.HealthCheckNodePort, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	default:
		errs = append(errs, check.Messages(health, spec.HealthCheckNodePort, validation.IsValidPortNum(int(spec.HealthCheckNodePort)))...)
	}
	// Upstream names this field with a capital.
	ranges := at.Child("LoadBalancerSourceRanges")
	if !balanced {
		for _, f := range []struct {
			set bool
			at  *field.Path
		}{
			{len(spec.LoadBalancerSourceRanges) > 0, ranges},
			{spec.AllocateLoadBalancerNodePorts != nil, at.Child("allocateLoadBalancerNodePorts")},
			{spec.LoadBalancerClass != nil, at.Child("loadBalancerClass")},
		} {
			if f.set {
				errs = append(errs, field.Forbidden(f.at, "may only be used when `type` is 'LoadBalancer'"))
			}
		}
		return errs
	}
	for i, one := range spec.LoadBalancerSourceRanges {
		// Spaces around one have always been let through.
		for _, problem := range validation.IsValidCIDRForLegacyField(ranges.Index(i).Upstream(), strings.TrimSpace(one), true, nil) {
			problem.BadValue = one
			errs = append(errs, problem)
		}
	}
	if spec.LoadBalancerClass != nil {
		errs = append(errs, check.QualifiedName(*spec.LoadBalancerClass, at.Child("loadBalancerClass"))...)
	}
	return errs
}

// maxAffinitySeconds is a day.
const maxAffinitySeconds = 86400

// validateTraffic is about where requests of one client go.
func validateTraffic(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		if seconds := *c.ClientIP.TimeoutSeconds; seconds <= 0 || seconds > maxAffinitySeconds {
			errs = append(errs, field.Invalid(at.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), seconds, "must be greater than 0 and less than 86400"))
		}
	}
	if p := spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, check.Supported(*p, at.Child("internalTrafficPolicy"), corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	known := []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode}
	if d := spec.TrafficDistribution; d != nil && !slices.Contains(known, *d) {
		errs = append(errs, field.NotSupported(at.Child("trafficDistribution"), *d, known))
	}
	return errs
}
