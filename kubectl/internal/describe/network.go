package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

func (p *page) ingressOf(i *ingress, events []core.Event) {
	p.line("Name", "%s", i.Name)
	p.pairs("Labels", i.Labels)
	p.line("Namespace", "%s", i.Namespace)
	var addresses []string
	for _, at := range i.Status.LoadBalancer.Ingress {
		addresses = append(addresses, cmp.Or(at.IP, at.Hostname))
	}
	p.line("Address", "%s", strings.Join(addresses, ","))
	p.line("Ingress Class", "%s", ptr.Deref(i.Spec.IngressClassName, "<none>"))
	otherwise := "<default>"
	if i.Spec.DefaultBackend != nil {
		otherwise = p.leadsTo(i.Spec.DefaultBackend)
	}
	p.line("Default backend", "%s", otherwise)
	if len(i.Spec.TLS) > 0 {
		p.text("TLS:")
		for _, tls := range i.Spec.TLS {
			hosts := strings.Join(tls.Hosts, ",")
			if tls.SecretName == "" {
				p.text("  SNI routes %s", hosts)
				continue
			}
			p.text("  %s terminates %s", tls.SecretName, hosts)
		}
	}
	p.text("Rules:\n  Host\tPath\tBackends\n  ----\t----\t--------")
	rules := 0
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		rules++
		p.text("  %s\t", cmp.Or(rule.Host, "*"))
		for j := range rule.HTTP.Paths {
			p.text("    \t%s \t%s", rule.HTTP.Paths[j].Path, p.leadsTo(&rule.HTTP.Paths[j].Backend))
		}
	}
	if rules == 0 {
		p.text("  %s\t%s\t%s", "*", "*", otherwise)
	}
	p.annotations(i.Annotations)
	p.events(events)
}

// Key is what Around.Backends are found by.
func (s *ServiceBackend) Key() string {
	return s.Name + ":" + cmp.Or(s.Port.Name, fmt.Sprint(s.Port.Number))
}

// BackendsOf are the services that an ingress leads to.
func BackendsOf(object *unstructured.Unstructured) []ServiceBackend {
	i := &ingress{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, i); err != nil {
		return nil
	}
	var all []ServiceBackend
	if b := i.Spec.DefaultBackend; b != nil && b.Service != nil {
		all = append(all, *b.Service)
	}
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for j := range rule.HTTP.Paths {
			if service := rule.HTTP.Paths[j].Backend.Service; service != nil {
				all = append(all, *service)
			}
		}
	}
	return all
}

func (p *page) leadsTo(b *backend) string {
	switch {
	case b.Service != nil:
		key := b.Service.Key()
		return fmt.Sprintf("%s (%s)", key, p.around.Backends[key])
	case b.Resource != nil:
		return fmt.Sprintf("APIGroup: %s, Kind: %s, Name: %s", ptr.Deref(b.Resource.APIGroup, "<none>"), b.Resource.Kind, b.Resource.Name)
	}
	return ""
}

func (p *page) ingressClassOf(c *ingressClass, events []core.Event) {
	p.line("Name", "%s", c.Name)
	p.marks(&c.ObjectMeta)
	p.line("Controller", "%s", c.Spec.Controller)
	if parameters := c.Spec.Parameters; parameters != nil {
		p.head("Parameters")
		p.under(func() {
			if parameters.APIGroup != nil {
				p.line("APIGroup", "%s", *parameters.APIGroup)
			}
			p.line("Kind", "%s", parameters.Kind)
			p.line("Name", "%s", parameters.Name)
		})
	}
	p.events(events)
}

func (p *page) networkPolicyOf(n *networkPolicy, _ []core.Event) {
	p.names(&n.ObjectMeta)
	p.line("Created on", "%s", n.CreationTimestamp.UTC())
	p.marks(&n.ObjectMeta)
	p.head("Spec")
	p.under(func() {
		selector := metav1.FormatLabelSelector(&n.Spec.PodSelector)
		if selector == "<none>" {
			selector += " (Allowing the specific traffic to all pods in this namespace)"
		}
		p.text("PodSelector:     %s", selector)
		types := n.Spec.PolicyTypes
		p.traffic("ingress", "From", "source", slices.Contains(types, "Ingress"), n.Spec.Ingress)
		p.traffic("egress", "To", "destination", slices.Contains(types, "Egress"), n.Spec.Egress)
		p.text("Policy Types: %s", strings.Join(types, ", "))
	})
}

func (p *page) traffic(direction, label, end string, affected bool, rules []rule) {
	if !affected {
		p.text("Not affecting %s traffic", direction)
		return
	}
	p.text("Allowing %s traffic:", direction)
	p.under(func() {
		if len(rules) == 0 {
			p.text("<none> (Selected pods are isolated for %s connectivity)", direction)
		}
		for i, r := range rules {
			if i > 0 {
				p.text("----------")
			}
			if len(r.Ports) == 0 {
				p.text("To Port: <any> (traffic allowed to all ports)")
			}
			for _, port := range r.Ports {
				p.portOf(&port)
			}
			peers := append(r.From, r.To...) // of one direction, one of them
			if len(peers) == 0 {
				p.text("%s: <any> (traffic not restricted by %s)", label, end)
			}
			for j := range peers {
				p.text("%s:", label)
				p.under(func() { p.peer(&peers[j]) })
			}
		}
	})
}

func (p *page) portOf(port *policyPort) {
	protocol := ptr.Deref(port.Protocol, corev1.ProtocolTCP)
	switch {
	case port.Port == nil:
		p.text("To Port: <any>/%s", protocol)
	case port.EndPort != nil:
		p.text("To Port Range: %s-%d/%s", port.Port.String(), *port.EndPort, protocol)
	default:
		p.text("To Port: %s/%s", port.Port.String(), protocol)
	}
}

func (p *page) peer(peer *policyPeer) {
	if peer.NamespaceSelector != nil {
		p.text("NamespaceSelector: %s", metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
	if peer.PodSelector != nil {
		p.text("PodSelector: %s", metav1.FormatLabelSelector(peer.PodSelector))
	}
	if peer.IPBlock != nil {
		p.text("IPBlock:")
		p.under(func() {
			p.text("CIDR: %s", peer.IPBlock.CIDR)
			p.text("Except: %s", strings.Join(peer.IPBlock.Except, ", "))
		})
	}
}

// endpointsOf describes Endpoints: deprecated in the API, and still there.
func (p *page) endpointsOf(e *corev1.Endpoints, events []core.Event) { //nolint:staticcheck // users have them
	p.names(&e.ObjectMeta)
	p.marks(&e.ObjectMeta)
	p.text("Subsets:")
	for i := range e.Subsets {
		p.under(func() { p.endpointSubset(&e.Subsets[i]) })
		p.text("")
	}
	p.events(events)
}

func (p *page) endpointSubset(subset *corev1.EndpointSubset) { //nolint:staticcheck // as above
	p.line("Addresses", "%s", addressesOf(subset.Addresses))
	p.line("NotReadyAddresses", "%s", addressesOf(subset.NotReadyAddresses))
	if len(subset.Ports) > 0 {
		p.text("Ports:")
		p.under(func() {
			p.text("Name\tPort\tProtocol")
			p.text("----\t----\t--------")
			for _, port := range subset.Ports {
				p.text("%s\t%d\t%s", cmp.Or(port.Name, "<unset>"), port.Port, port.Protocol)
			}
		})
	}
}

func addressesOf(addresses []corev1.EndpointAddress) string { //nolint:staticcheck // as above
	var all []string
	for _, address := range addresses {
		all = append(all, address.IP)
	}
	return cmp.Or(strings.Join(all, ","), "<none>")
}

func (p *page) endpointSlice(s *discoveryv1.EndpointSlice, events []core.Event) {
	p.names(&s.ObjectMeta)
	p.marks(&s.ObjectMeta)
	p.line("AddressType", "%s", s.AddressType)
	if len(s.Ports) == 0 {
		p.line("Ports", "<unset>")
	} else {
		p.text("Ports:")
		p.under(func() {
			p.text("Name\tPort\tProtocol")
			p.text("----\t----\t--------")
			for _, port := range s.Ports {
				p.text("%s\t%s\t%s",
					cmp.Or(ptr.Deref(port.Name, ""), "<unset>"), formatNumber(port.Port, ""), ptr.Deref(port.Protocol, corev1.ProtocolTCP))
			}
		})
	}
	if len(s.Endpoints) == 0 {
		p.line("Endpoints", "<none>")
	} else {
		p.text("Endpoints:")
	}
	for i := range s.Endpoints {
		p.endpoint(&s.Endpoints[i])
	}
	p.events(events)
}

func (p *page) endpoint(e *discoveryv1.Endpoint) {
	p.text("  - Addresses:\t%s", strings.Join(e.Addresses, ", "))
	p.under(func() {
		p.under(func() {
			p.text("Conditions:")
			p.under(func() { p.line("Ready", "%s", formatNumber(e.Conditions.Ready, "")) })
			p.line("Hostname", "%s", ptr.Deref(e.Hostname, "<unset>"))
			if e.TargetRef != nil {
				p.line("TargetRef", "%s/%s", e.TargetRef.Kind, e.TargetRef.Name)
			}
			p.line("NodeName", "%s", ptr.Deref(e.NodeName, "<unset>"))
			p.line("Zone", "%s", ptr.Deref(e.Zone, "<unset>"))
		})
	})
}
