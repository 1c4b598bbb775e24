package endpoints

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	netutils "k8s.io/utils/net"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// shown is how many addresses or ports a table shows.
const shown = 3

// The kind and its parts are deprecated in favour of slices, and old clients still use them.
type (
	endpoints       = corev1.Endpoints       //nolint:staticcheck
	endpointSubset  = corev1.EndpointSubset  //nolint:staticcheck
	endpointAddress = corev1.EndpointAddress //nolint:staticcheck
)

// Endpoints is the strategy of endpoints.
func Endpoints(clock clock.PassiveClock) registry.Strategy[*endpoints] {
	return registry.Strategy[*endpoints]{
		Resource: core.Endpoints, Singular: "endpoints", ShortNames: []string{"ep"},
		StoragePrefix: "services/endpoints",
		New:           func() *endpoints { return new(endpoints) },
		Default:       defaultEndpoints,
		Create: registry.CreateStrategy[*endpoints]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, e *endpoints) field.ErrorList { return validateEndpoints(e) },
			Warnings:     func(_ context.Context, e *endpoints) []string { return endpointsWarnings(e) },
		},
		Update: registry.UpdateStrategy[*endpoints]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate:           func(_ context.Context, e, _ *endpoints) field.ErrorList { return validateEndpoints(e) },
			Warnings:           func(_ context.Context, e, _ *endpoints) []string { return endpointsWarnings(e) },
		},
		Read: registry.ReadStrategy[*endpoints]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("Endpoints", endpoints{}.SwaggerDoc()["subsets"]), cell.AgeColumn(),
			},
			Row: func(e *endpoints) []any {
				return []any{e.Name, subsets(e.Subsets), cell.Age(clock.Now(), e.CreationTimestamp)}
			},
		},
	}
}

func defaultEndpoints(e *endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			if port := &e.Subsets[i].Ports[j]; port.Protocol == "" {
				port.Protocol = corev1.ProtocolTCP
			}
		}
	}
}

func validateEndpoints(e *endpoints) field.ErrorList {
	var errs field.ErrorList
	for i, subset := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		errs = append(errs, validateAddresses(subset.Addresses, at.Child("addresses"))...)
		errs = append(errs, validateAddresses(subset.NotReadyAddresses, at.Child("notReadyAddresses"))...)
		for j, port := range subset.Ports {
			path := at.Child("ports").Index(j)
			if port.Name == "" && len(subset.Ports) > 1 {
				errs = append(errs, field.Required(path.Child("name"), ""))
			} else if port.Name != "" {
				errs = append(errs, check.Label(port.Name, path.Child("name"))...)
			}
			errs = append(errs, check.Messages(path.Child("port"), port.Port, validation.IsValidPortNum(int(port.Port)))...)
			errs = append(errs, check.OneOf(port.Protocol, path.Child("protocol"), protocols...)...)
			errs = append(errs, appProtocol(port.AppProtocol, path.Child("appProtocol"))...)
		}
	}
	return errs
}

// endpointsWarnings warns about addresses in a non-canonical form.
func endpointsWarnings(e *endpoints) []string {
	var out []string
	for i, subset := range e.Subsets {
		at := field.NewPath("subsets").Index(i)
		for j, address := range subset.Addresses {
			out = append(out, validation.GetWarningsForIP(at.Child("addresses").Index(j).Child("ip").Upstream(), address.IP)...)
		}
		for j, address := range subset.NotReadyAddresses {
			out = append(out, validation.GetWarningsForIP(at.Child("notReadyAddresses").Index(j).Child("ip").Upstream(), address.IP)...)
		}
	}
	return out
}

func validateAddresses(addresses []endpointAddress, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, address := range addresses {
		path := at.Index(i)
		reachable := check.NonSpecialIP(address.IP, path.Child("ip"))
		if netutils.ParseIPSloppy(address.IP) == nil {
			errs = append(errs, reachable...)
			reachable = field.ErrorList{field.Invalid(path.Child("ip"), address.IP, "must be a valid IP address")} // once more, as in upstream
		}
		if address.Hostname != "" {
			errs = append(errs, check.Label(address.Hostname, path.Child("hostname"))...)
		}
		if address.NodeName != nil {
			errs = append(errs, check.Subdomain(*address.NodeName, path.Child("nodeName"))...)
		}
		errs = append(errs, reachable...)
	}
	return errs
}

func appProtocol(p *string, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	return check.QualifiedName(*p, at)
}

var protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

func subsets(all []endpointSubset) string {
	if len(all) == 0 {
		return cell.None
	}
	var found []string
	for _, subset := range all {
		for _, port := range subset.Ports {
			for _, address := range subset.Addresses {
				found = append(found, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
		}
		if len(subset.Ports) > 0 {
			continue
		}
		for _, address := range subset.Addresses {
			found = append(found, address.IP)
		}
	}
	return cell.Joined(found, shown)
}
