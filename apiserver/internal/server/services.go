package server

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// serviceAddress is where a service answers on a port: its cluster address, or,
// where it has a name elsewhere, that.
func (s *Server) serviceAddress(ctx context.Context, namespace, name string, port int32) (string, error) {
	service, err := lookUp[*corev1.Service](ctx, s.resources.Services, namespace, name)
	if err != nil {
		return "", fmt.Errorf("service %s/%s: %w", namespace, name, err)
	}
	host := service.Spec.ClusterIP
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		host = service.Spec.ExternalName
	}
	if host == "" || host == corev1.ClusterIPNone {
		return "", fmt.Errorf("service %s/%s has no address", namespace, name)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}
