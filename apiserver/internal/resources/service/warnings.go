package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
)

var balancerPath = field.NewPath("status", "loadBalancer", "ingress")

// warnings warns about what is deprecated, ignored, or in a non-canonical form,
// in upstream's order.
func warnings(s *corev1.Service) []string {
	var out []string
	spec, at := &s.Spec, field.NewPath("spec")
	if _, old := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; old {
		out = append(out, "annotation "+corev1.DeprecatedAnnotationTopologyAwareHints+" is deprecated, please use "+corev1.AnnotationTopologyMode+
			" instead")
	}
	if needsClusterIP(s) {
		for i, ip := range spec.ClusterIPs {
			out = append(out, validation.GetWarningsForIP(at.Child("clusterIPs").Index(i).Upstream(), ip)...)
		}
	}
	headless := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone
	if headless {
		out = append(out, headlessWarnings(spec)...)
	}
	for i, ip := range spec.ExternalIPs {
		out = append(out, validation.GetWarningsForIP(at.Child("externalIPs").Index(i).Upstream(), ip)...)
	}
	nameOnly := spec.Type == corev1.ServiceTypeExternalName
	if len(spec.ExternalIPs) > 0 && !headless && !nameOnly {
		out = append(out, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if spec.LoadBalancerIP != "" {
		out = append(out, validation.GetWarningsForIP(at.Child("loadBalancerIP").Upstream(), spec.LoadBalancerIP)...)
	}
	for i, one := range spec.LoadBalancerSourceRanges {
		out = append(out, validation.GetWarningsForCIDR(at.Child("loadBalancerSourceRanges").Index(i).Upstream(), one)...)
	}
	switch {
	case nameOnly && len(spec.ExternalIPs) > 0:
		out = append(out, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	case !nameOnly && spec.ExternalName != "":
		out = append(out, `spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if ptr.Deref(spec.TrafficDistribution, "") == corev1.ServiceTrafficDistributionPreferClose {
		out = append(out, `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`)
	}
	return out
}

// headlessWarnings are about fields without a meaning for a service without an
// address.
func headlessWarnings(spec *corev1.ServiceSpec) (out []string) {
	for _, of := range [...]struct {
		name string
		set  bool
	}{
		{"loadBalancerIP", spec.LoadBalancerIP != ""},
		{"externalIPs", len(spec.ExternalIPs) > 0},
		{"SessionAffinity", spec.SessionAffinity != corev1.ServiceAffinityNone},
	} {
		if of.set {
			out = append(out, "spec."+of.name+" is ignored for headless services")
		}
	}
	return out
}

// statusWarnings warns about load balancers' addresses in a non-canonical form.
func statusWarnings(s *corev1.Service) []string {
	var out []string
	for i, place := range s.Status.LoadBalancer.Ingress {
		if place.IP != "" {
			out = append(out, validation.GetWarningsForIP(balancerPath.Index(i).Upstream(), place.IP)...)
		}
	}
	return out
}
