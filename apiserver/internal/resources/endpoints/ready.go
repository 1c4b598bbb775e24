package endpoints

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// ServicePort is the port of a service that has the number; nil for none.
func ServicePort(service *corev1.Service, number int32) *corev1.ServicePort {
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == number {
			return &service.Spec.Ports[i]
		}
	}
	return nil
}

// ReadyAddresses are the addresses ("host:port") of a slice's endpoints that accept
// connections at the named port. Slices of host names are left out.
func ReadyAddresses(slice *discoveryv1.EndpointSlice, port string) []string {
	if slice.AddressType == discoveryv1.AddressTypeFQDN {
		return nil
	}
	var out []string
	for _, p := range slice.Ports {
		if p.Port == nil || ptr.Deref(p.Name, "") != port {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && ptr.Deref(e.Conditions.Ready, true) {
				out = append(out, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
			}
		}
	}
	return out
}
