package service

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of services. It allocates nothing: see Store.
func Strategy(clock clock.PassiveClock) registry.Strategy[*corev1.Service] {
	return registry.Strategy[*corev1.Service]{
		Resource: core.Services, Singular: "service", ShortNames: []string{"svc"}, Categories: []string{"all"},
		AnswersDeleted:   true,
		StoragePrefix:    "services/specs",
		New:              func() *corev1.Service { return new(corev1.Service) },
		Default:          setDefaults,
		ValidateName:     check.NameIsLabel,
		PrepareForCreate: prepareForCreate,
		Validate:         func(_ context.Context, s *corev1.Service) field.ErrorList { return validate(s) },
		Warnings:         func(_ context.Context, s *corev1.Service) []string { return warnings(s) },
		Update: registry.Change[*corev1.Service]{
			Prepare: prepareForUpdate, Validate: validateUpdate,
			Warnings: func(_ context.Context, s, _ *corev1.Service) []string { return warnings(s) },
		},
		Status: &registry.Change[*corev1.Service]{
			Prepare: func(_ context.Context, s, old *corev1.Service) { s.Spec = old.Spec },
			Validate: func(_ context.Context, s, old *corev1.Service) field.ErrorList {
				return validateBalanced(s, old, field.NewPath("status", "loadBalancer", "ingress"))
			},
		},
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
		Fields: func(s *corev1.Service) fields.Set {
			return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
		},
		Columns: columns(),
		Row:     func(s *corev1.Service) []any { return row(s, clock.Now()) },
	}
}

func setDefaults(s *corev1.Service) {
	spec := &s.Spec
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	switch {
	case spec.SessionAffinity == corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil || spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil:
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(corev1.DefaultClientIPServiceAffinitySeconds)}}
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if accessible(s) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.InternalTrafficPolicy == nil && spec.Type != corev1.ServiceTypeExternalName {
		spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
		spec.AllocateLoadBalancerNodePorts = ptr.To(true)
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	for i := range s.Status.LoadBalancer.Ingress {
		if at := &s.Status.LoadBalancer.Ingress[i]; at.IP != "" && at.IPMode == nil {
			at.IPMode = ptr.To(corev1.LoadBalancerIPModeVIP)
		}
	}
}

// outside: the service is reached from outside the cluster, through nodes.
func outside(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// accessible: it is reached from outside, be it by addresses that others bring in.
func accessible(s *corev1.Service) bool {
	return outside(s) || s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// getsNodePorts: outside, and given the ports for it where none are asked for.
func getsNodePorts(s *corev1.Service) bool {
	return outside(s) && (s.Spec.Type == corev1.ServiceTypeNodePort || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true))
}

// hasAddress: the service has an address of the range, or is to get one.
func hasAddress(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != corev1.ClusterIPNone
}

// sameAddresses takes over what who knows one address only has said.
func sameAddresses(spec *corev1.ServiceSpec) {
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// prepareForCreate drops what a name of elsewhere has no use for: clients of old
// send it.
func prepareForCreate(_ context.Context, s *corev1.Service) {
	s.Status = corev1.ServiceStatus{}
	sameAddresses(&s.Spec)
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		s.Spec.InternalTrafficPolicy = nil
	}
}

// prepareForUpdate keeps what the client left out because the server had given
// it, as long as the type still has it.
func prepareForUpdate(_ context.Context, s, old *corev1.Service) {
	s.Status = old.Status
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	dropBalancing(&s.Spec, &old.Spec)
	dropNodePorts(s, old)
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		if old.Spec.Type != corev1.ServiceTypeExternalName {
			dropFamilies(&s.Spec, &old.Spec)
		}
		s.Spec.InternalTrafficPolicy = nil
		sameAddresses(&s.Spec)
		return
	}
	if old.Spec.Type != corev1.ServiceTypeExternalName {
		keepFamilies(&s.Spec, &old.Spec)
	}
	sameAddresses(&s.Spec)
	keepNodePorts(s, old)
}

// dropBalancing takes away what goes with a type that the service had, where the
// update has left it as it was.
func dropBalancing(s, old *corev1.ServiceSpec) {
	switch before, after := wantsHealthPort(old), wantsHealthPort(s); {
	case before && !after && s.HealthCheckNodePort == old.HealthCheckNodePort:
		s.HealthCheckNodePort = 0
	case before && after && s.HealthCheckNodePort == 0:
		s.HealthCheckNodePort = old.HealthCheckNodePort
	}
	if old.Type != corev1.ServiceTypeLoadBalancer || s.Type == corev1.ServiceTypeLoadBalancer {
		return
	}
	if ptr.Equal(s.AllocateLoadBalancerNodePorts, old.AllocateLoadBalancerNodePorts) {
		s.AllocateLoadBalancerNodePorts = nil
	}
	if ptr.Equal(s.LoadBalancerClass, old.LoadBalancerClass) {
		s.LoadBalancerClass = nil
	}
}

// dropNodePorts takes away, of a service that is no longer reached from outside, what
// the update has left as it was.
func dropNodePorts(s, old *corev1.Service) {
	asked := func(port corev1.ServicePort) bool { return port.NodePort != 0 && !taken(old, port.NodePort) }
	if outside(old) && !outside(s) && !slices.ContainsFunc(s.Spec.Ports, asked) {
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = 0
		}
	}
	if accessible(old) && !accessible(s) && s.Spec.ExternalTrafficPolicy == old.Spec.ExternalTrafficPolicy {
		s.Spec.ExternalTrafficPolicy = ""
	}
}

// keepNodePorts: a port keeps its node port, by its name, where the update does not say.
func keepNodePorts(s, old *corev1.Service) {
	if !getsNodePorts(s) || !getsNodePorts(old) {
		return
	}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		for _, before := range old.Spec.Ports {
			if port.NodePort == 0 && before.Name == port.Name && !taken(s, before.NodePort) {
				port.NodePort = before.NodePort
			}
		}
	}
}

func taken(s *corev1.Service, nodePort int32) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == nodePort })
}
