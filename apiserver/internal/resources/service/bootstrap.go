package service

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/servicecidr"
	"kctl/proto/core"
)

const (
	// ServerService is the service of the API servers themselves.
	ServerService  = "kubernetes"
	serverPort     = 443
	serverPortName = "https"
)

// Bootstrap creates the service of the API servers themselves, with the first
// address of the server's own range. port is the servers' port.
func (s *Store) Bootstrap(ctx context.Context, port int) error {
	if _, err := registry.GetStored[*corev1.Service](ctx, s, core.NamespaceDefault, ServerService); err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	first := servicecidr.First(s.addresses.own[0])
	meta := metav1.ObjectMeta{
		Namespace: core.NamespaceDefault, Name: ServerService,
		Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
	}
	_, err := s.Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: first.String(), IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), SessionAffinity: corev1.ServiceAffinityNone,
		Type: corev1.ServiceTypeClusterIP,
		Ports: []corev1.ServicePort{{
			Name: serverPortName, Port: serverPort, TargetPort: intstr.FromInt32(int32(port)), Protocol: corev1.ProtocolTCP,
		}},
	}}, registry.Admission{}, &metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bootstrap service %s: %w", ServerService, err)
	}
	return nil
}
