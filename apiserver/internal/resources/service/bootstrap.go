package service

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

const (
	serverService  = "kubernetes"
	serverPort     = 443
	serverPortName = "https"
)

// Bootstrap makes the service that stands for the API server itself, with the
// first address of the range. Where the server is reached at one address that
// others can reach too, a slice says so.
func (s *Store) Bootstrap(ctx context.Context, slices *registry.Store[*discoveryv1.EndpointSlice], server netip.AddrPort) error {
	if _, err := s.GetTyped(ctx, core.NamespaceDefault, serverService, ""); err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	first, _ := s.addresses.bounds()
	meta := metav1.ObjectMeta{
		Namespace: core.NamespaceDefault, Name: serverService,
		Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
	}
	_, err := s.Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: first.String(), SessionAffinity: corev1.ServiceAffinityNone, Type: corev1.ServiceTypeClusterIP,
		Ports: []corev1.ServicePort{{Name: serverPortName, Port: serverPort, TargetPort: intstr.FromInt32(int32(server.Port())), Protocol: corev1.ProtocolTCP}},
	}}, registry.Admit{}, &metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bootstrap service %s: %w", serverService, err)
	}
	if addr := server.Addr(); !addr.IsValid() || addr.IsLoopback() || addr.IsUnspecified() || !addr.Is4() {
		return nil
	}
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: serverService}
	_, err = slices.CreateTyped(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{server.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:     []discoveryv1.EndpointPort{{Name: ptr.To(serverPortName), Port: ptr.To(int32(server.Port())), Protocol: ptr.To(corev1.ProtocolTCP)}},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bootstrap endpoints of service %s: %w", serverService, err)
	}
	return nil
}
