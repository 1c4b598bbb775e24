package networking

import (
	"context"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	netutils "k8s.io/utils/net"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
)

func networkPolicies(clock clock.PassiveClock) registry.Strategy[*networkingv1.NetworkPolicy] {
	return registry.Strategy[*networkingv1.NetworkPolicy]{
		Resource: resource("networkpolicies", "NetworkPolicy", true), Singular: "networkpolicy", ShortNames: []string{"netpol"},
		Default:       defaultPolicy,
		HasGeneration: true,
		Create: registry.CreateStrategy[*networkingv1.NetworkPolicy]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, p *networkingv1.NetworkPolicy) field.ErrorList {
				return validatePolicy(&p.Spec, nil)
			},
			Warnings: func(_ context.Context, p *networkingv1.NetworkPolicy) []string { return policyWarnings(&p.Spec) },
		},
		Update: registry.UpdateStrategy[*networkingv1.NetworkPolicy]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, p, old *networkingv1.NetworkPolicy) field.ErrorList {
				return validatePolicy(&p.Spec, ranges(&old.Spec))
			},
			Warnings: func(_ context.Context, p, _ *networkingv1.NetworkPolicy) []string { return policyWarnings(&p.Spec) },
		},
		Read: registry.ReadStrategy[*networkingv1.NetworkPolicy]{
			Columns: cell.Columns(networkingv1.NetworkPolicySpec{}.SwaggerDoc(), "Name", "Pod-Selector=podSelector", "Age"),
			Row: func(p *networkingv1.NetworkPolicy) []any {
				return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), cell.Age(clock.Now(), p.CreationTimestamp)}
			},
		},
	}
}

func defaultPolicy(p *networkingv1.NetworkPolicy) {
	s := &p.Spec
	tcp := func(ports []networkingv1.NetworkPolicyPort) {
		for i := range ports {
			if ports[i].Protocol == nil {
				ports[i].Protocol = new(corev1.ProtocolTCP)
			}
		}
	}
	for i := range s.Ingress {
		tcp(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		tcp(s.Egress[i].Ports)
	}
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

// validatePolicy validates a policy, whose rules may use the stored ranges anywhere: which
// rule of a changed policy was which can't be told.
func validatePolicy(s *networkingv1.NetworkPolicySpec, stored []string) field.ErrorList {
	errs := check.LabelSelector(&s.PodSelector, specPath.Child("podSelector"))
	for i := range s.Ingress {
		at := specPath.Child("ingress").Index(i)
		errs = append(errs, validatePorts(s.Ingress[i].Ports, at.Child("ports"))...)
		errs = append(errs, validatePeers(s.Ingress[i].From, stored, at.Child("from"))...)
	}
	for i := range s.Egress {
		at := specPath.Child("egress").Index(i)
		errs = append(errs, validatePorts(s.Egress[i].Ports, at.Child("ports"))...)
		errs = append(errs, validatePeers(s.Egress[i].To, stored, at.Child("to"))...)
	}
	if len(s.PolicyTypes) > 2 {
		return append(errs, field.Invalid(specPath.Child("policyTypes"), s.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, kind := range s.PolicyTypes {
		if kind != networkingv1.PolicyTypeIngress && kind != networkingv1.PolicyTypeEgress {
			errs = append(errs, field.NotSupported(specPath.Child("policyTypes").Index(i), kind,
				[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}))
		}
	}
	return errs
}

func validatePorts(ports []networkingv1.NetworkPolicyPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, port := range ports {
		path := at.Index(i)
		protocols := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
		if p := port.Protocol; p != nil && !slices.Contains(protocols, *p) {
			errs = append(errs, field.NotSupported(path.Child("protocol"), *p, protocols))
		}
		switch {
		case port.Port == nil:
			if port.EndPort != nil {
				errs = append(errs, field.Invalid(path.Child("endPort"), *port.EndPort, "may not be specified when `port` is not specified"))
			}
		case port.Port.Type == intstr.Int:
			errs = append(errs, check.Messages(path.Child("port"), port.Port.IntVal, validation.IsValidPortNum(int(port.Port.IntVal)))...)
			if end := port.EndPort; end != nil {
				if *end < port.Port.IntVal {
					errs = append(errs, field.Invalid(path.Child("endPort"), *end, "must be greater than or equal to `port`"))
				}
				errs = append(errs, check.Messages(path.Child("endPort"), *end, validation.IsValidPortNum(int(*end)))...)
			}
		default:
			if port.EndPort != nil {
				errs = append(errs, field.Invalid(path.Child("endPort"), *port.EndPort, "may not be specified when `port` is non-numeric"))
			}
			errs = append(errs, check.Messages(path.Child("port"), port.Port.StrVal, validation.IsValidPortName(port.Port.StrVal))...)
		}
	}
	return errs
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, stored []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, peer := range peers {
		path := at.Index(i)
		if peer.PodSelector != nil {
			errs = append(errs, check.LabelSelector(peer.PodSelector, path.Child("podSelector"))...)
		}
		if peer.NamespaceSelector != nil {
			errs = append(errs, check.LabelSelector(peer.NamespaceSelector, path.Child("namespaceSelector"))...)
		}
		selects := peer.PodSelector != nil || peer.NamespaceSelector != nil
		switch {
		case peer.IPBlock == nil && !selects:
			errs = append(errs, field.Required(path, "must specify a peer"))
		case peer.IPBlock != nil && selects:
			errs = append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
		}
		if peer.IPBlock != nil {
			errs = append(errs, validateBlock(peer.IPBlock, stored, path.Child("ipBlock"))...)
		}
	}
	return errs
}

// ranges are all address ranges in a policy.
func ranges(s *networkingv1.NetworkPolicySpec) []string {
	var out []string
	add := func(peers []networkingv1.NetworkPolicyPeer) {
		for _, peer := range peers {
			if peer.IPBlock != nil {
				out = append(append(out, peer.IPBlock.CIDR), peer.IPBlock.Except...)
			}
		}
	}
	for i := range s.Ingress {
		add(s.Ingress[i].From)
	}
	for i := range s.Egress {
		add(s.Egress[i].To)
	}
	return out
}

// validateBlock checks the exceptions only if the range can be read, or was stored: that one
// may stay, and must not hide what is added.
func validateBlock(b *networkingv1.IPBlock, stored []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if b.CIDR == "" {
		errs = append(errs, field.Required(at.Child("cidr"), ""))
	} else {
		errs = append(errs, validation.IsValidCIDRForLegacyField(at.Child("cidr").Upstream(), b.CIDR, true, stored)...)
	}
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil && !slices.Contains(stored, b.CIDR) {
		return errs
	}
	for i, text := range b.Except {
		path := at.Child("except").Index(i)
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Upstream(), text, true, stored)...)
		if _, part, err := netutils.ParseCIDRSloppy(text); err == nil && whole != nil && !within(part, whole) {
			errs = append(errs, field.Invalid(path, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// within reports whether part is a range within the whole, and smaller.
func within(part, whole *net.IPNet) bool {
	partBits, _ := part.Mask.Size()
	bits, _ := whole.Mask.Size()
	return whole.Contains(part.IP) && partBits > bits
}

// policyWarnings warns about address ranges in a non-canonical form.
func policyWarnings(s *networkingv1.NetworkPolicySpec) []string {
	var out []string
	look := func(peers []networkingv1.NetworkPolicyPeer, at *field.Path) {
		for i, peer := range peers {
			if peer.IPBlock == nil {
				continue
			}
			path := at.Index(i).Child("ipBlock")
			out = append(out, validation.GetWarningsForCIDR(path.Child("cidr").Upstream(), peer.IPBlock.CIDR)...)
			for j, except := range peer.IPBlock.Except {
				out = append(out, validation.GetWarningsForCIDR(path.Child("except").Index(j).Upstream(), except)...)
			}
		}
	}
	for i := range s.Ingress {
		look(s.Ingress[i].From, specPath.Child("ingress").Index(i).Child("from"))
	}
	for i := range s.Egress {
		look(s.Egress[i].To, specPath.Child("egress").Index(i).Child("to"))
	}
	return out
}
