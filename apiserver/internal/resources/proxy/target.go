package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/endpoints"
	"kctl/proto/core"
)

// target is the server that answers.
type target struct {
	scheme, host string // host with its port, if any
	transport    http.RoundTripper
	kubelet      bool
}

// finder finds the target of a name in a URL: NAME, NAME:PORT or
// SCHEME:NAME:PORT.
type finder func(ctx context.Context, namespace, name string) (*target, error)

var errAddress = errors.New("address not allowed")

// checkProxyableIP reports whether an address means the same here as where it was
// taken from.
func checkProxyableIP(ip net.IP) error {
	if ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsInterfaceLocalMulticast() ||
		ip.IsUnspecified() {
		return errAddress
	}
	return nil
}

// checkHost refuses hosts with other addresses.
func (p *Proxies) checkHost(ctx context.Context, host string) error {
	ips := []net.IP{net.ParseIP(host)}
	if ips[0] == nil && host != "" {
		found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		ips = nil
		for _, address := range found {
			ips = append(ips, address.IP)
		}
	}
	for _, ip := range ips {
		if err := p.checkIP(ip); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	return nil
}

func (p *Proxies) targetAt(ctx context.Context, scheme, host, port string) (*target, error) {
	if err := p.checkHost(ctx, host); err != nil {
		return nil, err
	}
	if scheme == "" {
		scheme = "http"
	}
	address := host
	if port != "" {
		address = net.JoinHostPort(host, port)
	} else if net.ParseIP(host).To4() == nil && net.ParseIP(host) != nil {
		address = "[" + host + "]"
	}
	return &target{scheme: scheme, host: address, transport: p.transport}, nil
}

func (p *Proxies) pod(ctx context.Context, namespace, id string) (*target, error) {
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", id))
	}
	pod, err := registry.GetStored[*core.Pod](ctx, p.Pods, namespace, name)
	if err != nil {
		return nil, err
	}
	if port == "" {
		port = firstPort(pod)
	}
	return p.targetAt(ctx, scheme, pod.Status.PodIP, port)
}

// firstPort is the first that a container of the pod names.
func firstPort(pod *core.Pod) string {
	for i := range pod.Spec.Containers {
		if ports := pod.Spec.Containers[i].Ports; len(ports) > 0 {
			return strconv.Itoa(int(ports[0].ContainerPort))
		}
	}
	return ""
}

func (p *Proxies) node(ctx context.Context, _, id string) (*target, error) {
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid node request %q", id))
	}
	node, err := registry.GetStored[*core.Node](ctx, p.Nodes, "", name)
	if err != nil {
		return nil, err
	}
	u, err := p.Kubelets.URL(node, "", nil)
	if err != nil {
		return nil, err
	}
	if port != "" && port != u.Port() {
		return p.targetAt(ctx, scheme, u.Hostname(), port)
	}
	if err := p.checkHost(ctx, u.Hostname()); err != nil {
		return nil, err
	}
	return &target{scheme: u.Scheme, host: u.Host, transport: p.kubelets, kubelet: true}, nil
}

func (p *Proxies) service(ctx context.Context, namespace, id string) (*target, error) {
	scheme, name, port, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", id))
	}
	if number, err := strconv.ParseInt(port, 10, 32); err == nil {
		if port, err = p.portName(ctx, namespace, name, int32(number)); err != nil {
			return nil, err
		}
	}
	host, port, err := p.endpoint(ctx, namespace, name, port)
	if err != nil {
		return nil, err
	}
	return p.targetAt(ctx, scheme, host, port)
}

func (p *Proxies) portName(ctx context.Context, namespace, name string, number int32) (string, error) {
	service, err := registry.GetStored[*corev1.Service](ctx, p.Services, namespace, name)
	if err != nil {
		return "", err
	}
	if port := endpoints.ServicePort(service, number); port != nil {
		return port.Name, nil
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", number, name))
}

// endpoint picks one of the service's ready endpoints.
func (p *Proxies) endpoint(ctx context.Context, namespace, service, portName string) (host, port string, err error) {
	list, err := p.EndpointSlices.List(ctx, namespace, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service}), ResourceVersion: "0",
	})
	if err != nil {
		return "", "", err
	}
	var ready []string
	for _, item := range list.Items {
		decoded, err := p.EndpointSlices.Decode(item)
		if err != nil {
			return "", "", err
		}
		ready = append(ready, endpoints.ReadyAddresses(decoded.(*discoveryv1.EndpointSlice), portName)...)
	}
	if len(ready) == 0 {
		return "", "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", service))
	}
	return net.SplitHostPort(ready[rand.IntN(len(ready))])
}
