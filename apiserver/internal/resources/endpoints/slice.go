package endpoints

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
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
	maxHints     = 8
)

var families = sets.New(discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)

// Slices is the strategy of endpoint slices.
func Slices(clock clock.PassiveClock) registry.Strategy[*discoveryv1.EndpointSlice] {
	return registry.Strategy[*discoveryv1.EndpointSlice]{
		Resource: core.EndpointSlices, Singular: "endpointslice",
		New:     func() *discoveryv1.EndpointSlice { return new(discoveryv1.EndpointSlice) },
		Default: defaultSlice,
		Normalize: func(e *discoveryv1.EndpointSlice) {
			e.Endpoints, e.Ports = check.NilIfEmpty(e.Endpoints), check.NilIfEmpty(e.Ports)
		},
		HasGeneration: true,
		DesiredState: func(e *discoveryv1.EndpointSlice) any {
			return []any{e.AddressType, e.Endpoints, e.Ports, e.Labels}
		},
		Create: registry.CreateStrategy[*discoveryv1.EndpointSlice]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, e *discoveryv1.EndpointSlice) field.ErrorList { return validateSlice(e) },
			Warnings: func(_ context.Context, e *discoveryv1.EndpointSlice) []string {
				if e.AddressType == discoveryv1.AddressTypeFQDN {
					return []string{"spec.addressType: FQDN endpoints are deprecated"}
				}
				return nil
			},
		},
		Update: registry.UpdateStrategy[*discoveryv1.EndpointSlice]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, e, old *discoveryv1.EndpointSlice) field.ErrorList {
				return append(check.DeclaredImmutable(e.AddressType, old.AddressType, field.NewPath("addressType")), validateSlice(e)...)
			},
		},
		Read: registry.ReadStrategy[*discoveryv1.EndpointSlice]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("AddressType", discoveryv1.EndpointSlice{}.SwaggerDoc()["addressType"]),
				cell.Text("Ports", discoveryv1.EndpointSlice{}.SwaggerDoc()["ports"]),
				cell.Text("Endpoints", discoveryv1.EndpointSlice{}.SwaggerDoc()["endpoints"]), cell.AgeColumn(),
			},
			Row: func(e *discoveryv1.EndpointSlice) []any { return sliceRow(e, clock.Now()) },
		},
	}
}

func sliceRow(e *discoveryv1.EndpointSlice, now time.Time) []any {
	var ports, addresses []string
	for _, port := range e.Ports {
		if port.Port == nil { // whichever it is
			ports = append(ports, ptr.Deref(port.Name, ""))
			continue
		}
		ports = append(ports, fmt.Sprint(*port.Port))
	}
	for _, endpoint := range e.Endpoints {
		addresses = append(addresses, endpoint.Addresses...)
	}
	return []any{
		e.Name, string(e.AddressType), orUnset(cell.Joined(ports, shown)), orUnset(cell.Joined(addresses, shown)),
		cell.Age(now, e.CreationTimestamp),
	}
}

// orUnset is upstream's word for a slice without any.
func orUnset(s string) string {
	if strings.TrimSpace(s) == "" {
		return "<unset>"
	}
	return s
}

// defaultSlice also drops a field that version 1 only shows of slices written
// in an older version.
func defaultSlice(e *discoveryv1.EndpointSlice) {
	for i := range e.Endpoints {
		e.Endpoints[i].DeprecatedTopology = nil
	}
	for i := range e.Ports {
		port := &e.Ports[i]
		if port.Name == nil {
			port.Name = new("")
		}
		if port.Protocol == nil {
			port.Protocol = new(corev1.ProtocolTCP)
		}
	}
}

// validateSlice validates a slice. Endpoints of an unknown family, and earlier
// ones, are accepted.
func validateSlice(e *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
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
		errs = append(errs, check.Supported(ptr.Deref(port.Protocol, ""), at.Child("protocol"), protocols...)...)
		errs = append(errs, appProtocol(port.AppProtocol, at.Child("appProtocol"))...)
	}
	if len(e.Endpoints) > maxEndpoints {
		errs = append(errs, field.TooMany(field.NewPath("endpoints"), len(e.Endpoints), maxEndpoints))
	}
	for i := range e.Endpoints {
		errs = append(errs, validateEndpoint(&e.Endpoints[i], e.AddressType, field.NewPath("endpoints").Index(i))...)
	}
	switch {
	case e.AddressType == "":
		errs = append(errs, field.Required(field.NewPath("addressType"), ""))
	case !families.Has(e.AddressType):
		errs = append(errs, field.NotSupported(field.NewPath("addressType"), e.AddressType, sets.List(families)))
	}
	for i := range e.Endpoints {
		if len(e.Endpoints[i].Addresses) == 0 {
			errs = append(errs, field.Required(field.NewPath("endpoints").Index(i).Child("addresses"), ""))
		}
	}
	return errs
}

func validateEndpoint(e *discoveryv1.Endpoint, family discoveryv1.AddressType, at *field.Path) field.ErrorList {
	addresses := at.Child("addresses")
	var errs field.ErrorList
	if len(e.Addresses) > maxAddresses {
		errs = append(errs, field.TooMany(addresses, len(e.Addresses), maxAddresses))
	}
	for i, address := range e.Addresses {
		errs = append(errs, validateAddress(address, family, addresses, i)...)
	}
	if e.NodeName != nil {
		errs = append(errs, check.Subdomain(*e.NodeName, at.Child("nodeName"))...)
	}
	if e.Hostname != nil {
		errs = append(errs, check.Label(*e.Hostname, at.Child("hostname"))...)
	}
	if e.Hints == nil {
		return errs
	}
	var zones, nodes []string
	for _, zone := range e.Hints.ForZones {
		zones = append(zones, zone.Name)
	}
	for _, node := range e.Hints.ForNodes {
		nodes = append(nodes, node.Name)
	}
	errs = append(errs, validateHints(zones, at.Child("hints", "forZones"), validation.IsValidLabelValue)...)
	return append(errs, validateHints(nodes, at.Child("hints", "forNodes"), validation.IsDNS1123Subdomain)...)
}

func validateAddress(text string, family discoveryv1.AddressType, at *field.Path, i int) field.ErrorList {
	switch family {
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(at.Index(i).Upstream(), text)
	case discoveryv1.AddressTypeIPv6: // only the canonical form: two forms of one address would be two endpoints
		if errs := validation.IsValidIP(at.Index(i).Upstream(), text); len(errs) > 0 {
			return errs
		}
	case discoveryv1.AddressTypeIPv4:
	default:
		return nil
	}
	var errs field.ErrorList
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil: // NonSpecialIP reports that
	case family == discoveryv1.AddressTypeIPv4 && !ip.Is4():
		errs = append(errs, field.Invalid(at, text, "must be an IPv4 address"))
	case family == discoveryv1.AddressTypeIPv6 && !ip.Is6():
		errs = append(errs, field.Invalid(at, text, "must be an IPv6 address"))
	}
	return append(errs, check.NonSpecialIP(text, at.Index(i))...)
}

// validateHints validates the zones or nodes for which an endpoint is preferred.
func validateHints(names []string, at *field.Path, nameIs func(string) []string) field.ErrorList {
	if len(names) > maxHints {
		return field.ErrorList{field.TooMany(at, len(names), maxHints)}
	}
	var errs field.ErrorList
	for i, name := range names {
		path := at.Index(i).Child("name")
		if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(path, name))
		}
		errs = append(errs, check.Messages(path, name, nameIs(name))...)
	}
	return errs
}
