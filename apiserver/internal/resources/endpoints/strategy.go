// Package endpoints says what is particular about the two kinds that tell where
// a service's traffic goes. Both are kept as they come: nobody here fills them
// from pods, and nobody here sends traffic by them.
package endpoints

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Upstream's bounds of one slice.
const (
	maxEndpoints = 1000
	maxPorts     = 20000
	maxAddresses = 100
	shown        = 3
)

var (
	families  = sets.New(discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
	protocols = sets.New(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
)

// Endpoints is the strategy of endpoints.
func Endpoints(clock clock.PassiveClock) registry.Strategy[*corev1.Endpoints] { //nolint:staticcheck // old clients still use it
	return registry.Strategy[*corev1.Endpoints]{ //nolint:staticcheck
		Resource: core.Endpoints, Singular: "endpoints", ShortNames: []string{"ep"},
		StoragePrefix: "services/endpoints",
		New:           func() *corev1.Endpoints { return new(corev1.Endpoints) }, //nolint:staticcheck
		Default:       defaultEndpoints,
		ValidateName:  check.NameIsSubdomain,
		Validate:      func(_ context.Context, e *corev1.Endpoints) field.ErrorList { return validateEndpoints(e) }, //nolint:staticcheck
		Update: registry.Change[*corev1.Endpoints]{ //nolint:staticcheck
			Validate: func(_ context.Context, e, _ *corev1.Endpoints) field.ErrorList { return validateEndpoints(e) }, //nolint:staticcheck
		},
		UnconditionalUpdate: true,
		Columns: []metav1.TableColumnDefinition{
			cell.Name(), cell.Text("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"]), cell.AgeColumn(), //nolint:staticcheck
		},
		Row: func(e *corev1.Endpoints) []any { //nolint:staticcheck
			return []any{e.Name, cell.OrNone(subsets(e.Subsets)), cell.Age(clock.Now(), e.CreationTimestamp)}
		},
	}
}

func defaultEndpoints(e *corev1.Endpoints) { //nolint:staticcheck
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			if port := &e.Subsets[i].Ports[j]; port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
		}
	}
}

func validateEndpoints(e *corev1.Endpoints) field.ErrorList { //nolint:staticcheck
	var errs field.ErrorList
	for i, subset := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j, address := range subset.Addresses {
			errs = append(errs, reachable(address.IP, at.Child("addresses").Index(j).Child("ip"))...)
		}
		for j, address := range subset.NotReadyAddresses {
			errs = append(errs, reachable(address.IP, at.Child("notReadyAddresses").Index(j).Child("ip"))...)
		}
		for j, port := range subset.Ports {
			path := at.Child("ports").Index(j)
			if port.Name == "" && len(subset.Ports) > 1 {
				errs = append(errs, field.Required(path.Child("name"), ""))
			} else if port.Name != "" {
				errs = append(errs, check.Label(port.Name, path.Child("name"))...)
			}
			errs = append(errs, check.Messages(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))...)
			errs = append(errs, protocol(port.Protocol, path.Child("protocol"))...)
		}
	}
	return errs
}

// reachable checks an address that is to be reached from everywhere.
func reachable(text string, at *field.Path) field.ErrorList {
	ip := net.ParseIP(text)
	switch {
	case ip == nil:
		return field.ErrorList{field.Invalid(at, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")}
	case ip.IsUnspecified():
		return field.ErrorList{field.Invalid(at, text, "may not be unspecified (0.0.0.0 or ::)")}
	case ip.IsLoopback():
		return field.ErrorList{field.Invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")}
	case ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast():
		return field.ErrorList{field.Invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")}
	}
	return nil
}

func protocol(p corev1.Protocol, at *field.Path) field.ErrorList {
	switch {
	case p == "":
		return field.ErrorList{field.Required(at, "")}
	case !protocols.Has(p):
		return field.ErrorList{field.NotSupported(at, p, sets.List(protocols))}
	}
	return nil
}

func subsets(all []corev1.EndpointSubset) string { //nolint:staticcheck
	var found []string
	for _, subset := range all {
		for _, address := range subset.Addresses {
			for _, port := range subset.Ports {
				found = append(found, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
			if len(subset.Ports) == 0 {
				found = append(found, address.IP)
			}
		}
	}
	return cell.Joined(found, shown)
}

// Slices is the strategy of endpoint slices.
func Slices(clock clock.PassiveClock) registry.Strategy[*discoveryv1.EndpointSlice] {
	return registry.Strategy[*discoveryv1.EndpointSlice]{
		Resource: core.EndpointSlices, Singular: "endpointslice",
		New:          func() *discoveryv1.EndpointSlice { return new(discoveryv1.EndpointSlice) },
		Default:      defaultSlice,
		ValidateName: check.NameIsSubdomain,
		Validate:     func(_ context.Context, e *discoveryv1.EndpointSlice) field.ErrorList { return validateSlice(e) },
		Update: registry.Change[*discoveryv1.EndpointSlice]{
			Validate: func(_ context.Context, e, old *discoveryv1.EndpointSlice) field.ErrorList {
				return append(check.Same(e.AddressType, old.AddressType, field.NewPath("addressType")), validateSlice(e)...)
			},
		},
		HasGeneration:       true,
		UnconditionalUpdate: true,
		Columns: []metav1.TableColumnDefinition{
			cell.Name(), cell.Text("AddressType", discoveryv1.EndpointSlice{}.SwaggerDoc()["addressType"]),
			cell.Text("Ports", discoveryv1.EndpointSlice{}.SwaggerDoc()["ports"]),
			cell.Text("Endpoints", discoveryv1.EndpointSlice{}.SwaggerDoc()["endpoints"]), cell.AgeColumn(),
		},
		Row: func(e *discoveryv1.EndpointSlice) []any {
			var ports, addresses []string
			for _, port := range e.Ports {
				ports = append(ports, fmt.Sprint(ptr.Deref(port.Port, 0)))
			}
			for _, endpoint := range e.Endpoints {
				addresses = append(addresses, endpoint.Addresses...)
			}
			return []any{
				e.Name, string(e.AddressType), or(cell.Joined(ports, shown)), or(cell.Joined(addresses, shown)),
				cell.Age(clock.Now(), e.CreationTimestamp),
			}
		},
	}
}

// or is upstream's word for a slice that has none.
func or(s string) string {
	if strings.TrimSpace(s) == "" {
		return "<unset>"
	}
	return s
}

func defaultSlice(e *discoveryv1.EndpointSlice) {
	for i := range e.Ports {
		port := &e.Ports[i]
		if port.Name == nil {
			port.Name = ptr.To("")
		}
		if port.Protocol == nil {
			port.Protocol = ptr.To(corev1.ProtocolTCP)
		}
	}
}

func validateSlice(e *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	switch {
	case e.AddressType == "":
		errs = append(errs, field.Required(field.NewPath("addressType"), ""))
	case !families.Has(e.AddressType):
		errs = append(errs, field.NotSupported(field.NewPath("addressType"), e.AddressType, sets.List(families)))
	}
	if len(e.Endpoints) > maxEndpoints {
		errs = append(errs, field.TooMany(field.NewPath("endpoints"), len(e.Endpoints), maxEndpoints))
	}
	for i, endpoint := range e.Endpoints {
		at := field.NewPath("endpoints").Index(i).Child("addresses")
		switch {
		case len(endpoint.Addresses) == 0:
			errs = append(errs, field.Required(at, "must contain at least 1 address"))
		case len(endpoint.Addresses) > maxAddresses:
			errs = append(errs, field.TooMany(at, len(endpoint.Addresses), maxAddresses))
		}
		for j, address := range endpoint.Addresses {
			if e.AddressType == discoveryv1.AddressTypeFQDN {
				errs = append(errs, check.Subdomain(address, at.Index(j))...)
			} else {
				errs = append(errs, reachable(address, at.Index(j))...)
			}
		}
	}
	if len(e.Ports) > maxPorts {
		errs = append(errs, field.TooMany(field.NewPath("ports"), len(e.Ports), maxPorts))
	}
	names := sets.New[string]()
	for i, port := range e.Ports {
		at := field.NewPath("ports").Index(i)
		name := ptr.Deref(port.Name, "")
		if name != "" {
			errs = append(errs, check.Label(name, at.Child("name"))...)
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
		errs = append(errs, protocol(ptr.Deref(port.Protocol, ""), at.Child("protocol"))...)
	}
	return errs
}
