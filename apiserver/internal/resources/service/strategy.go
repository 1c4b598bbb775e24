package service

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// strategy is the strategy of services. It allocates nothing: see Store.
func strategy(clock clock.PassiveClock) registry.Strategy[*corev1.Service] {
	return registry.Strategy[*corev1.Service]{
		Resource: core.Services, Singular: "service", ShortNames: []string{"svc"}, Categories: []string{"all"},
		StoragePrefix: "services/specs",
		New:           func() *corev1.Service { return new(corev1.Service) },
		Default:       setDefaults,
		Create: registry.CreateStrategy[*corev1.Service]{
			Prepare:      prepareForCreate,
			ValidateName: check.NameIsLabel,
			Validate:     func(_ context.Context, s *corev1.Service) field.ErrorList { return validate(s) },
			Warnings:     func(_ context.Context, s *corev1.Service) []string { return warnings(s) },
		},
		Update: registry.UpdateStrategy[*corev1.Service]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Prepare:            prepareForUpdate,
			Validate:           validateUpdate,
			Warnings:           func(_ context.Context, s, _ *corev1.Service) []string { return warnings(s) },
		},
		Status: &registry.UpdateStrategy[*corev1.Service]{
			Prepare: func(_ context.Context, s, old *corev1.Service) { s.Spec = old.Spec },
			Validate: func(_ context.Context, s, old *corev1.Service) field.ErrorList {
				return validateLoadBalancerStatus(s, old, balancerPath)
			},
			Warnings: func(_ context.Context, s, _ *corev1.Service) []string { return statusWarnings(s) },
		},
		Delete: registry.DeleteStrategy[*corev1.Service]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*corev1.Service]{
			Fields: func(s *corev1.Service) fields.Set {
				return fields.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
			},
			Columns: columns(),
			Row:     func(s *corev1.Service) []any { return row(s, clock.Now()) },
		},
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
	case spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil ||
		spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil:
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{
			TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds),
		}}
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
	if isExternallyAccessible(s) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.InternalTrafficPolicy == nil && spec.Type != corev1.ServiceTypeExternalName {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.AllocateLoadBalancerNodePorts == nil {
		spec.AllocateLoadBalancerNodePorts = new(true)
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	for i := range s.Status.LoadBalancer.Ingress {
		if at := &s.Status.LoadBalancer.Ingress[i]; at.IP != "" && at.IPMode == nil {
			at.IPMode = new(corev1.LoadBalancerIPModeVIP)
		}
	}
}

// isReachableThroughNodes reports whether the service can be reached from outside the cluster, through
// nodes.
func isReachableThroughNodes(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// isExternallyAccessible reports whether it can be reached from outside, including by external IPs.
func isExternallyAccessible(s *corev1.Service) bool {
	return isReachableThroughNodes(s) || s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// defaultsNodePorts reports whether node ports are allocated by default.
func defaultsNodePorts(s *corev1.Service) bool {
	return isReachableThroughNodes(s) && (s.Spec.Type == corev1.ServiceTypeNodePort || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true))
}

// needsClusterIP reports whether the service has, or is to get, a cluster IP.
func needsClusterIP(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != corev1.ClusterIPNone
}

// syncClusterIPs takes over the value from a client that knows one address only.
func syncClusterIPs(spec *corev1.ServiceSpec) {
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// prepareForCreate drops fields that an ExternalName does not use: old clients
// send them.
func prepareForCreate(_ context.Context, s *corev1.Service) {
	s.Status = corev1.ServiceStatus{}
	syncClusterIPs(&s.Spec)
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		s.Spec.InternalTrafficPolicy = nil
	}
}

// prepareForUpdate keeps allocated values that the client omits, as long as
// they fit the type.
func prepareForUpdate(_ context.Context, s, old *corev1.Service) {
	s.Status = old.Status
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	dropLoadBalancerFields(&s.Spec, &old.Spec)
	dropNodePorts(s, old)
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		if old.Spec.Type != corev1.ServiceTypeExternalName {
			dropFamilies(&s.Spec, &old.Spec)
		}
		s.Spec.InternalTrafficPolicy = nil
		syncClusterIPs(&s.Spec)
		return
	}
	if old.Spec.Type != corev1.ServiceTypeExternalName {
		keepFamilies(&s.Spec, &old.Spec)
	}
	syncClusterIPs(&s.Spec)
	keepNodePorts(s, old)
}

// dropLoadBalancerFields drops fields of the service's earlier type that the update has
// not changed.
func dropLoadBalancerFields(s, old *corev1.ServiceSpec) {
	switch before, after := needsHealthCheckNodePort(old), needsHealthCheckNodePort(s); {
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

// dropNodePorts drops unchanged node ports of a service that is no longer reached
// from outside.
func dropNodePorts(s, old *corev1.Service) {
	had := nodePortsOf(old)
	asked := func(port corev1.ServicePort) bool { return port.NodePort != 0 && !had.Has(port.NodePort) }
	if isReachableThroughNodes(old) && !isReachableThroughNodes(s) && !slices.ContainsFunc(s.Spec.Ports, asked) {
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = 0
		}
	}
	if isExternallyAccessible(old) && !isExternallyAccessible(s) && s.Spec.ExternalTrafficPolicy == old.Spec.ExternalTrafficPolicy {
		s.Spec.ExternalTrafficPolicy = ""
	}
}

// keepNodePorts keeps the node ports of ports, by name, that the update omits.
func keepNodePorts(s, old *corev1.Service) {
	if !defaultsNodePorts(s) || !defaultsNodePorts(old) {
		return
	}
	before, taken := make(map[string]int32, len(old.Spec.Ports)), nodePortsOf(s)
	for _, port := range old.Spec.Ports {
		before[port.Name] = port.NodePort
	}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if had := before[port.Name]; port.NodePort == 0 && !taken.Has(had) {
			port.NodePort = had
			taken.Insert(had)
		}
	}
}

func nodePortsOf(s *corev1.Service) sets.Set[int32] {
	ports := sets.New[int32]()
	for _, port := range s.Spec.Ports {
		ports.Insert(port.NodePort)
	}
	return ports
}
