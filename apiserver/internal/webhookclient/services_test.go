package webhookclient

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func slice(port int32, name string, ready *bool, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}})
	}
	return s
}

func TestAddresses(t *testing.T) {
	service := func(change ...func(*corev1.ServiceSpec)) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.9", Ports: []corev1.ServicePort{{Name: "web", Port: 443}, {Name: "metrics", Port: 9}}}}
		s.Name = "hook"
		for _, c := range change {
			c(&s.Spec)
		}
		return s
	}
	headless := func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }
	external := func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "hook.example.com"
	}
	for name, c := range map[string]struct {
		service *corev1.Service
		slices  []*discoveryv1.EndpointSlice
		port    int32
		want    []string
		err     string
	}{
		"endpoints": {service(), []*discoveryv1.EndpointSlice{slice(8443, "web", nil, "10.1.0.1", "10.1.0.2"), slice(8443, "web", new(true), "10.1.0.3")}, 443,
			[]string{"10.1.0.1:8443", "10.1.0.2:8443", "10.1.0.3:8443"}, ""},
		"by port": {service(), []*discoveryv1.EndpointSlice{slice(8443, "web", nil, "10.1.0.1"), slice(99, "metrics", nil, "10.1.0.1")}, 9,
			[]string{"10.1.0.1:99"}, ""},
		"not ready": {service(), []*discoveryv1.EndpointSlice{slice(8443, "web", new(false), "10.1.0.1")}, 443, nil,
			`no endpoints available for service "hook"`},
		"another port":   {service(), nil, 80, nil, `no service port 80 found for service "hook"`},
		"nobody follows": {service(), nil, 443, []string{"10.0.0.9:443"}, ""},
		"headless":       {service(headless), nil, 443, nil, `no endpoints available for service "hook"`},
		"external":       {service(external), nil, 443, []string{"hook.example.com:443"}, ""},
	} {
		got, err := addressesOf(c.service, c.slices, c.port)
		if !slices.Equal(got, c.want) || (err != nil) != (c.err != "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

type behind struct {
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice
}

func (b behind) Service(context.Context, string, string) (*corev1.Service, error) {
	return b.service, nil
}

func (b behind) Slices(context.Context, string, string) ([]*discoveryv1.EndpointSlice, error) {
	return b.slices, nil
}

// TestDialService: it is enough that one of the service's endpoints answers.
func TestDialService(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int32(listener.Addr().(*net.TCPAddr).Port)
	ref := &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hook"}
	b := behind{
		&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		[]*discoveryv1.EndpointSlice{slice(port, "", nil, "127.0.0.1", "127.0.0.2", "127.0.0.3")},
	}
	for range 8 { // in any order
		connection, err := dialService(t.Context(), b, ref, new(net.Dialer), "tcp")
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dialService(t.Context(), b, ref, new(net.Dialer), "tcp"); err == nil || !strings.Contains(err.Error(), "127.0.0.3") ||
		errors.Is(err, context.Canceled) {
		t.Errorf("no endpoint answers: %v", err)
	}
}
