package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
)

// warnings tells users of what is outdated, or is not looked at.
func warnings(s *corev1.Service) []string {
	var out []string
	if _, old := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; old {
		out = append(out, "annotation "+corev1.DeprecatedAnnotationTopologyAwareHints+" is deprecated, please use "+corev1.AnnotationTopologyMode+" instead")
	}
	if near := s.Spec.TrafficDistribution; near != nil && *near == corev1.ServiceTrafficDistributionPreferClose {
		out = append(out, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`)
	}
	headless := s.Spec.ClusterIP == corev1.ClusterIPNone
	if headless && s.Spec.SessionAffinity != corev1.ServiceAffinityNone {
		out = append(out, "spec.SessionAffinity is ignored for headless services")
	}
	switch {
	case len(s.Spec.ExternalIPs) == 0:
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		out = append(out, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	case headless:
		out = append(out, "spec.externalIPs is ignored for headless services")
	default:
		out = append(out, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	return append(out, addressWarnings(&s.Spec, headless)...)
}

// addressWarnings tells of addresses that are written in an unusual way.
func addressWarnings(s *corev1.ServiceSpec, headless bool) []string {
	var out []string
	at := field.NewPath("spec")
	if !headless {
		for i, ip := range s.ClusterIPs {
			out = append(out, validation.GetWarningsForIP(at.Child("clusterIPs").Index(i).Upstream(), ip)...)
		}
	}
	for i, ip := range s.ExternalIPs {
		out = append(out, validation.GetWarningsForIP(at.Child("externalIPs").Index(i).Upstream(), ip)...)
	}
	if s.LoadBalancerIP != "" {
		out = append(out, validation.GetWarningsForIP(at.Child("loadBalancerIP").Upstream(), s.LoadBalancerIP)...)
	}
	for i, one := range s.LoadBalancerSourceRanges {
		out = append(out, validation.GetWarningsForCIDR(at.Child("loadBalancerSourceRanges").Index(i).Upstream(), one)...)
	}
	return out
}
