package service

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const onlyLoadBalancerMessage = "may only be used when `type` is 'LoadBalancer'"

// validateLoadBalancer validates the fields of load balancer services.
func validateLoadBalancer(s *corev1.Service, at *field.Path) field.ErrorList {
	spec := &s.Spec
	errs := validateSources(s, at)
	balanced := spec.Type == corev1.ServiceTypeLoadBalancer
	if spec.AllocateLoadBalancerNodePorts != nil && !balanced {
		errs = append(errs, field.Forbidden(at.Child("allocateLoadBalancerNodePorts"), onlyLoadBalancerMessage))
	}
	switch class := at.Child("loadBalancerClass"); {
	case spec.LoadBalancerClass == nil:
	case balanced:
		errs = append(errs, check.QualifiedName(*spec.LoadBalancerClass, class)...)
	default:
		errs = append(errs, field.Forbidden(class, onlyLoadBalancerMessage))
	}
	return errs
}

// validateSources validates a load balancer's source ranges: the field, or the
// annotation that preceded it.
func validateSources(s *corev1.Service, spec *field.Path) field.ErrorList {
	at := spec.Child("LoadBalancerSourceRanges") // upstream spells this field with a capital
	ranges := s.Spec.LoadBalancerSourceRanges
	place := at.Index
	if len(ranges) == 0 {
		text, said := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
		if !said {
			return nil
		}
		at = field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		place = func(int) *field.Path { return at }
		if text = strings.TrimSpace(text); text != "" {
			ranges = strings.Split(text, ",")
		}
	}
	var errs field.ErrorList
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(at, onlyLoadBalancerMessage))
	}
	for i, one := range ranges {
		// Spaces around one have always been accepted.
		errs = append(errs, validation.IsValidCIDRForLegacyField(place(i).Upstream(), strings.TrimSpace(one), true, nil)...)
	}
	return errs
}

// maxAffinitySeconds is a day.
const maxAffinitySeconds = 86400

// validateAffinity validates session affinity.
func validateAffinity(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	if !affinities.Has(spec.SessionAffinity) {
		return field.ErrorList{field.NotSupported(at.Child("sessionAffinity"), spec.SessionAffinity, sets.List(affinities))}
	}
	c, at := spec.SessionAffinityConfig, at.Child("sessionAffinityConfig")
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		if c != nil {
			return field.ErrorList{field.Forbidden(at, "must not be set when session affinity is None")}
		}
		return nil
	}
	const missing = "when session affinity type is ClientIP"
	switch {
	case c == nil:
		return field.ErrorList{field.Required(at, missing)}
	case c.ClientIP == nil:
		return field.ErrorList{field.Required(at.Child("clientIP"), missing)}
	case c.ClientIP.TimeoutSeconds == nil:
		return field.ErrorList{field.Required(at.Child("clientIP", "timeoutSeconds"), missing)}
	}
	if seconds := *c.ClientIP.TimeoutSeconds; seconds <= 0 || seconds > maxAffinitySeconds {
		return field.ErrorList{field.Invalid(at.Child("clientIP", "timeoutSeconds"), seconds, "must be greater than 0 and less than 86400")}
	}
	return nil
}

// validateTraffic validates traffic policies and distribution.
func validateTraffic(s *corev1.Service, at *field.Path) field.ErrorList {
	spec := &s.Spec
	var errs field.ErrorList
	switch policy, path := spec.ExternalTrafficPolicy, at.Child("externalTrafficPolicy"); {
	case !isExternallyAccessible(s):
		if policy != "" {
			errs = append(errs, field.Invalid(path, policy, "may only be set for externally-accessible services"))
		}
	case policy == "":
		errs = append(errs, field.Required(path, ""))
	case !policies.Has(policy):
		errs = append(errs, field.NotSupported(path, policy, sets.List(policies)))
	}
	switch health := at.Child("healthCheckNodePort"); {
	case spec.HealthCheckNodePort == 0:
	case !needsHealthCheckNodePort(spec):
		errs = append(errs, field.Invalid(health, spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	default:
		errs = append(errs, check.Messages(health, spec.HealthCheckNodePort, validation.IsValidPortNum(int(spec.HealthCheckNodePort)))...)
	}
	if p := spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, check.Supported(*p, at.Child("internalTrafficPolicy"),
			corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	known := []string{corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode}
	if d := spec.TrafficDistribution; d != nil && !slices.Contains(known, *d) {
		errs = append(errs, field.NotSupported(at.Child("trafficDistribution"), *d, known))
	}
	return errs
}
