package aggregation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/registry"
	kept "kctl/apiserver/internal/resources/endpoints"
)

var errNoEndpoints = errors.New("no endpoints available")

// resolve finds the address of a service: "host:port".
func (a *Aggregator) resolve(ctx context.Context, to serviceName) (string, error) {
	service, err := a.service(ctx, to)
	if err != nil {
		return "", err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(to.port))), nil
	}
	port := kept.ServicePort(service, to.port)
	if port == nil {
		return "", fmt.Errorf("no service port %d found for service %q", to.port, to.name)
	}
	address := service.Spec.ClusterIP
	if !a.options.ToEndpoints && address != "" && address != corev1.ClusterIPNone {
		return net.JoinHostPort(address, strconv.Itoa(int(to.port))), nil
	}
	found, err := a.endpoints(ctx, to, port.Name)
	if err != nil {
		return "", err
	}
	if len(found.addresses) == 0 {
		return "", fmt.Errorf("service %q: %w", to.name, errNoEndpoints)
	}
	return found.addresses[rand.IntN(len(found.addresses))], nil
}

func (a *Aggregator) service(ctx context.Context, to serviceName) (*corev1.Service, error) {
	return a.services.Get(ctx, to.namespace, to.name)
}

// endpoints are the addresses of a service's ready pods.
type endpoints struct {
	slices    int
	addresses []string
}

// resolved are the endpoints that a service's slices had.
type resolved struct {
	port   string
	slices []registry.Encoded
	endpoints
}

// endpoints decodes a service's slices only if they have changed since it last did: every
// request that is passed on needs them.
func (a *Aggregator) endpoints(ctx context.Context, to serviceName, port string) (endpoints, error) {
	list, err := a.options.EndpointSlices.List(ctx, to.namespace, registry.ListOptions{ResourceVersion: "0", Labels: slicesOf(to)})
	if err != nil {
		return endpoints{}, err
	}
	if known, ok := a.resolved.Load(to); ok {
		if last := known.(*resolved); last.port == port && slices.EqualFunc(last.slices, list.Items, sameBytes) {
			return last.endpoints, nil
		}
	}
	found := endpoints{slices: len(list.Items)}
	for _, item := range list.Items {
		obj, err := a.options.EndpointSlices.Decode(item)
		if err != nil {
			return endpoints{}, err
		}
		found.addresses = append(found.addresses, kept.ReadyAddresses(obj.(*discoveryv1.EndpointSlice), port)...)
	}
	a.resolved.Store(to, &resolved{port: port, slices: list.Items, endpoints: found})
	return found, nil
}

func sameBytes(a, b registry.Encoded) bool { return bytes.Equal(a.JSON, b.JSON) }

func slicesOf(to serviceName) labels.Selector {
	return labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: to.name})
}
