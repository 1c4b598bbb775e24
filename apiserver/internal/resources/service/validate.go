package service

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	types      = sets.New(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	affinities = sets.New(corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	protocols  = sets.New(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	policies   = sets.New(corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
)

func validate(s *corev1.Service) field.ErrorList {
	at := field.NewPath("spec")
	spec := &s.Spec
	errs := validateType(s, at)
	if len(spec.Ports) == 0 && hasAddress(s) {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	errs = append(errs, validatePorts(s, at.Child("ports"))...)
	errs = append(errs, metav1validation.ValidateLabels(spec.Selector, at.Child("selector").Upstream())...)
	if !affinities.Has(spec.SessionAffinity) {
		errs = append(errs, field.NotSupported(at.Child("sessionAffinity"), spec.SessionAffinity, sets.List(affinities)))
	}
	errs = append(errs, validateAddresses(s, at)...)
	errs = append(errs, validateBalancer(s, at)...)
	errs = append(errs, validateTraffic(spec, at)...)
	switch policy := spec.ExternalTrafficPolicy; {
	case policy == "":
	case !accessible(s):
		errs = append(errs, field.Invalid(at.Child("externalTrafficPolicy"), policy, "may only be set for externally-accessible services"))
	case !policies.Has(policy):
		errs = append(errs, field.NotSupported(at.Child("externalTrafficPolicy"), policy, sets.List(policies)))
	}
	return errs
}

func validateType(s *corev1.Service, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &s.Spec
	switch {
	case !types.Has(spec.Type):
		errs = append(errs, field.NotSupported(at.Child("type"), spec.Type, sets.List(types)))
	case spec.Type == corev1.ServiceTypeExternalName:
		if len(spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(at.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if spec.ExternalName == "" {
			errs = append(errs, field.Required(at.Child("externalName"), ""))
		} else {
			errs = append(errs, check.Subdomain(strings.TrimSuffix(spec.ExternalName, "."), at.Child("externalName"))...)
		}
	case spec.ClusterIP == corev1.ClusterIPNone && outside(s):
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIP, fmt.Sprintf("may not be set to 'None' for %s services", spec.Type)))
	}
	return errs
}

func validateAddresses(s *corev1.Service, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &s.Spec
	errs = append(errs, validateFamilies(spec, at)...)
	for i, ip := range spec.ExternalIPs {
		errs = append(errs, check.Reachable(ip, at.Child("externalIPs").Index(i))...)
	}
	return errs
}

func validatePorts(s *corev1.Service, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, numbers, onNodes := sets.New[string](), sets.New[string](), sets.New[string]()
	for i := range s.Spec.Ports {
		port, path := &s.Spec.Ports[i], at.Index(i)
		switch {
		case port.Name == "" && len(s.Spec.Ports) > 1:
			errs = append(errs, field.Required(path.Child("name"), ""))
		case port.Name != "":
			errs = append(errs, check.Label(port.Name, path.Child("name"))...)
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, check.Messages(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))...)
		if !protocols.Has(port.Protocol) {
			errs = append(errs, field.NotSupported(path.Child("protocol"), port.Protocol, sets.List(protocols)))
		}
		if port.TargetPort.Type == intstr.Int {
			errs = append(errs, check.Messages(path.Child("targetPort"), port.TargetPort.IntVal, validation.IsValidPortNum(int(port.TargetPort.IntVal)))...)
		} else {
			errs = append(errs, check.Messages(path.Child("targetPort"), port.TargetPort.StrVal, validation.IsValidPortName(port.TargetPort.StrVal))...)
		}
		if port.AppProtocol != nil {
			errs = append(errs, check.QualifiedName(*port.AppProtocol, path.Child("appProtocol"))...)
		}
		if port.NodePort != 0 && !outside(s) {
			errs = append(errs, field.Forbidden(path.Child("nodePort"), fmt.Sprintf("may not be used when `type` is '%s'", s.Spec.Type)))
		}
		key := fmt.Sprintf("%s/%d", port.Protocol, port.Port)
		if numbers.Has(key) {
			shown := struct {
				Name, Protocol string
				AppProtocol    *string
				Port           int32
				TargetPort     int
				NodePort       int32
			}{Protocol: string(port.Protocol), Port: port.Port}
			errs = append(errs, field.Duplicate(path, shown))
		}
		numbers.Insert(key)
		key = fmt.Sprintf("%s/%d", port.Protocol, port.NodePort)
		if port.NodePort != 0 && onNodes.Has(key) {
			errs = append(errs, field.Duplicate(path.Child("nodePort"), port.NodePort))
		}
		onNodes.Insert(key)
	}
	return errs
}

func validateUpdate(_ context.Context, s, old *corev1.Service) field.ErrorList {
	at := field.NewPath("spec")
	errs := check.Newly(validate(s), validate(old))
	now, before := &s.Spec, &old.Spec
	if len(validateFamilies(now, at)) == 0 {
		errs = append(errs, changedFamilies(now, before, at)...)
	}
	if before.HealthCheckNodePort != 0 && wantsHealthPort(now) && wantsHealthPort(before) && now.HealthCheckNodePort != before.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(at.Child("healthCheckNodePort"), "field is immutable"))
	}
	if balanced := corev1.ServiceTypeLoadBalancer; now.Type == balanced && before.Type == balanced && !ptr.Equal(now.LoadBalancerClass, before.LoadBalancerClass) {
		errs = append(errs, field.Invalid(at.Child("loadBalancerClass"), now.LoadBalancerClass, "may not change once set"))
	}
	return errs
}

// wantsHealthPort says whether a load balancer asks each node how it is.
func wantsHealthPort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
