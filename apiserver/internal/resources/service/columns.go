package service

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/resources/cell"
)

func columns() []metav1.TableColumnDefinition {
	doc := corev1.ServiceSpec{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		cell.Name(),
		cell.Text("Type", doc["type"]),
		cell.Text("Cluster-IP", doc["clusterIP"]),
		cell.Text("External-IP", doc["externalIPs"]),
		cell.Text("Port(s)", doc["ports"]),
		cell.AgeColumn(),
		cell.Wide("Selector", doc["selector"]),
	}
}

func row(s *corev1.Service, now time.Time) []any {
	var ports []string
	for _, port := range s.Spec.Ports {
		text := fmt.Sprintf("%d/%s", port.Port, port.Protocol)
		if port.NodePort > 0 {
			text = fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		ports = append(ports, text)
	}
	return []any{
		s.Name, string(s.Spec.Type), cell.OrNone(s.Spec.ClusterIP), externalAddresses(s), cell.OrNone(strings.Join(ports, ",")),
		cell.Age(now, s.CreationTimestamp), labels.FormatLabels(s.Spec.Selector),
	}
}

// externalAddresses are the service's external addresses.
func externalAddresses(s *corev1.Service) string {
	var at []string
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" {
				at = append(at, ingress.IP)
			} else if ingress.Hostname != "" {
				at = append(at, ingress.Hostname)
			}
		}
		slices.Sort(at)
		at = append(at, s.Spec.ExternalIPs...)
		if len(at) == 0 {
			return "<pending>"
		}
	default:
		at = s.Spec.ExternalIPs
	}
	return cell.OrNone(strings.Join(at, ","))
}
