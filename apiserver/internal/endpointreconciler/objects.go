package endpointreconciler

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/core"
)

const portName = "https"

func meta(label, value string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: core.NamespaceDefault, Name: service.ServerService, Labels: map[string]string{label: value}}
}

//nolint:staticcheck // old clients still use Endpoints
func newEndpoints(alive []netip.AddrPort) *corev1.Endpoints {
	// The slice is written here, too, so no controller should mirror this object.
	e := &corev1.Endpoints{ObjectMeta: meta(discoveryv1.LabelSkipMirror, "true")}
	if len(alive) == 0 {
		return e
	}
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: portName, Port: int32(alive[0].Port()), Protocol: corev1.ProtocolTCP}}}
	for _, a := range alive {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: a.Addr().String()})
	}
	e.Subsets = []corev1.EndpointSubset{subset}
	return e
}

func (r *Reconciler) newSlice(alive []netip.AddrPort) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: meta(discoveryv1.LabelServiceName, service.ServerService), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{},
	}
	if !r.address.Addr().Is4() {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	for _, a := range alive {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{a.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	if len(alive) > 0 {
		s.Ports = []discoveryv1.EndpointPort{{Name: new(portName), Port: new(int32(alive[0].Port())), Protocol: new(corev1.ProtocolTCP)}}
	}
	return s
}

// createOrUpdate stores want, or changes the stored object to it. It writes nothing if
// they are equal.
func createOrUpdate[T core.Object](ctx context.Context, store *registry.Store[T], want T, assign func(has, want T)) error {
	has, err := registry.Find[T](ctx, store, want.GetNamespace(), want.GetName())
	if apierrors.IsNotFound(err) {
		if _, err = store.CreateTyped(ctx, want); apierrors.IsAlreadyExists(err) {
			return nil // another server was faster; the next round compares
		}
		return err
	}
	if err != nil {
		return err
	}
	changed := has.DeepCopyObject().(T)
	assign(changed, want)
	if equality.Semantic.DeepEqual(has, changed) {
		return nil
	}
	_, err = store.UpdateTyped(ctx, want.GetNamespace(), want.GetName(), "", func(obj T) error {
		assign(obj, want)
		return nil
	})
	return err
}
