package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilnet "k8s.io/utils/net"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// validateLoadBalancerStatus validates a load balancer's addresses. at is their path in
// the service's status.
func validateLoadBalancerStatus(s, old *corev1.Service, at *field.Path) field.ErrorList {
	places := s.Status.LoadBalancer.Ingress
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		if len(places) > 0 {
			return field.ErrorList{field.Forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")}
		}
		return nil
	}
	var had []string
	for _, before := range old.Status.LoadBalancer.Ingress {
		had = append(had, before.IP)
	}
	var errs field.ErrorList
	for i := range places {
		place, at := &places[i], at.Index(i)
		if place.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip").Upstream(), place.IP, true, had)...)
		}
		errs = append(errs, validateIPMode(place, at.Child("ipMode"))...)
		if place.Hostname == "" {
			continue
		}
		errs = append(errs, check.Subdomain(place.Hostname, at.Child("hostname"))...)
		if utilnet.ParseIPSloppy(place.Hostname) != nil {
			errs = append(errs, field.Invalid(at.Child("hostname"), place.Hostname, "must be a DNS name, not an IP address"))
		}
	}
	return errs
}

func validateIPMode(place *corev1.LoadBalancerIngress, at *field.Path) field.ErrorList {
	known := []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}
	switch mode := place.IPMode; {
	case mode == nil && place.IP != "":
		return field.ErrorList{field.Required(at, "must be specified when `ip` is set")}
	case mode == nil:
	case place.IP == "":
		return field.ErrorList{field.Forbidden(at, "may not be specified when `ip` is not set")}
	case !slices.Contains(known, *mode):
		return field.ErrorList{field.NotSupported(at, *mode, known)}
	}
	return nil
}
