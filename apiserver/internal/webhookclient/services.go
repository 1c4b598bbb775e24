package webhookclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/resources/endpoints"
)

// Services finds the endpoints of a service.
type Services interface {
	Service(ctx context.Context, namespace, name string) (*corev1.Service, error)
	// Slices are all endpoint slices of a service.
	Slices(ctx context.Context, namespace, name string) ([]*discoveryv1.EndpointSlice, error)
}

// dialService connects to one of a service's endpoints, because cluster IPs
// need not work on the server's machine. Only a service without maintained
// endpoints is reached by its cluster IP.
func dialService(ctx context.Context, services Services, ref *admissionregistrationv1.ServiceReference, dialer *net.Dialer,
	network string) (net.Conn, error) {
	service, err := services.Service(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("service %q not found", ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("service %q: %w", ref.Name, err)
	}
	slices, err := services.Slices(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("endpoints of service %q: %w", ref.Name, err)
	}
	addresses, err := addressesOf(service, slices, port(ref))
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	var errs []error
	for _, address := range addresses {
		connection, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			return connection, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// addressesOf are the addresses of a service's port.
func addressesOf(service *corev1.Service, slices []*discoveryv1.EndpointSlice, wanted int32) ([]string, error) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(wanted)))}, nil
	}
	found := endpoints.ServicePort(service, wanted)
	if found == nil {
		return nil, fmt.Errorf("no service port %d found for service %q", wanted, service.Name)
	}
	if len(slices) == 0 && service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone {
		return []string{net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(wanted)))}, nil
	}
	var out []string
	for _, slice := range slices {
		out = append(out, endpoints.ReadyAddresses(slice, found.Name)...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no endpoints available for service %q", service.Name)
	}
	return out, nil
}
