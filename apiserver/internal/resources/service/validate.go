package service

import (
	"context"
	"fmt"
	"slices"
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
	types = sets.New(
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName,
	)
	affinities = sets.New(corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	protocols  = sets.New(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	policies   = sets.New(corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
)

// validate returns errors in upstream's order.
func validate(s *corev1.Service) field.ErrorList {
	at := field.NewPath("spec")
	spec := &s.Spec
	var errs field.ErrorList
	mode, says := s.Annotations[corev1.AnnotationTopologyMode]
	if hints, said := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; says && said && mode != hints {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode), mode,
			"must match annotations["+corev1.DeprecatedAnnotationTopologyAwareHints+"] when both are specified"))
	}
	if len(spec.Ports) == 0 && needsClusterIP(s) {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	errs = append(errs, validateOfType(s, at)...)
	names := sets.New[string]()
	for i := range spec.Ports {
		errs = append(errs, validatePort(&spec.Ports[i], len(spec.Ports) > 1, names, at.Child("ports").Index(i))...)
	}
	errs = append(errs, metav1validation.ValidateLabels(spec.Selector, at.Child("selector").Upstream())...)
	errs = append(errs, validateAffinity(spec, at)...)
	errs = append(errs, validateFamilies(spec, at)...)
	for i, ip := range spec.ExternalIPs {
		errs = append(errs, check.NonSpecialIP(ip, at.Child("externalIPs").Index(i))...)
	}
	if !types.Has(spec.Type) {
		errs = append(errs, field.NotSupported(at.Child("type"), spec.Type, sets.List(types)))
	}
	errs = append(errs, validatePorts(spec, at.Child("ports"))...)
	errs = append(errs, validateLoadBalancer(s, at)...)
	return append(errs, validateTraffic(s, at)...)
}

// validateOfType validates what one type of service must have, and others may not.
func validateOfType(s *corev1.Service, at *field.Path) field.ErrorList {
	spec := &s.Spec
	if spec.Type != corev1.ServiceTypeExternalName {
		if spec.ClusterIP == corev1.ClusterIPNone && isReachableThroughNodes(s) {
			return field.ErrorList{field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIP,
				fmt.Sprintf("may not be set to 'None' for %s services", spec.Type))}
		}
		return nil
	}
	var errs field.ErrorList
	for _, of := range [...]struct {
		name string
		set  bool
	}{{"clusterIPs", len(spec.ClusterIPs) > 0}, {"ipFamilies", len(spec.IPFamilies) > 0}, {"ipFamilyPolicy", spec.IPFamilyPolicy != nil}} {
		if of.set {
			errs = append(errs, field.Forbidden(at.Child(of.name), "may not be set for ExternalName services"))
		}
	}
	name := strings.TrimSuffix(spec.ExternalName, ".")
	if name == "" {
		return append(errs, field.Required(at.Child("externalName"), ""))
	}
	return append(errs, check.Subdomain(name, at.Child("externalName"))...)
}

// validatePort validates a port by itself; names are those of the earlier ports.
func validatePort(port *corev1.ServicePort, several bool, names sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case port.Name != "":
		errs = append(errs, check.Label(port.Name, at.Child("name"))...)
		if names.Has(port.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
		}
		names.Insert(port.Name)
	case several:
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	errs = append(errs, check.Messages(at.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))...)
	if !protocols.Has(port.Protocol) {
		errs = append(errs, field.NotSupported(at.Child("protocol"), port.Protocol, sets.List(protocols)))
	}
	if port.TargetPort.Type == intstr.Int {
		errs = append(errs, check.Messages(at.Child("targetPort"), port.TargetPort.IntVal,
			validation.IsValidPortNum(int(port.TargetPort.IntVal)))...)
	} else {
		errs = append(errs, check.Messages(at.Child("targetPort"), port.TargetPort.StrVal, validation.IsValidPortName(port.TargetPort.StrVal))...)
	}
	if port.AppProtocol != nil {
		errs = append(errs, check.QualifiedName(*port.AppProtocol, at.Child("appProtocol"))...)
	}
	return errs
}

// validatePorts checks ports against each other, node ports first.
func validatePorts(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	var inside, onNodes, twice field.ErrorList
	seen, seenOnNodes := sets.New[key](), sets.New[key]()
	for i := range spec.Ports {
		port, path := &spec.Ports[i], at.Index(i)
		if port.NodePort != 0 {
			if spec.Type == corev1.ServiceTypeClusterIP {
				inside = append(inside, field.Forbidden(path.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
			}
			there := key{port.Protocol, port.NodePort}
			if seenOnNodes.Has(there) {
				onNodes = append(onNodes, field.Duplicate(path.Child("nodePort"), port.NodePort))
			}
			seenOnNodes.Insert(there)
		}
		here := key{port.Protocol, port.Port}
		if seen.Has(here) {
			shown := struct {
				Name, Protocol string
				AppProtocol    *string
				Port           int32
				TargetPort     int
				NodePort       int32
			}{Protocol: string(port.Protocol), Port: port.Port}
			twice = append(twice, field.Duplicate(path, shown))
		}
		seen.Insert(here)
	}
	return slices.Concat(inside, onNodes, twice)
}

func validateUpdate(_ context.Context, s, old *corev1.Service) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	now, before := &s.Spec, &old.Spec
	// what was stored invalid may stay so, and must not hide what changes beside it
	if len(validateFamilies(now, at)) == 0 || len(validateFamilies(before, at)) > 0 {
		errs = append(errs, changedFamilies(now, before, at)...)
	}
	if balanced := corev1.ServiceTypeLoadBalancer; now.Type == balanced && before.Type == balanced &&
		!ptr.Equal(now.LoadBalancerClass, before.LoadBalancerClass) {
		errs = append(errs, field.Invalid(at.Child("loadBalancerClass"), now.LoadBalancerClass, "may not change once set"))
	}
	if before.HealthCheckNodePort != 0 && needsHealthCheckNodePort(now) && needsHealthCheckNodePort(before) &&
		now.HealthCheckNodePort != before.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(at.Child("healthCheckNodePort"), "field is immutable"))
	}
	return append(errs, validate(s)...)
}

// needsHealthCheckNodePort reports whether a load balancer checks the health of nodes.
func needsHealthCheckNodePort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
