package environment

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// serviceVariables are the environment variables by which a container finds
// services without DNS: those of its own namespace unless the pod does not
// want them, and always that of the API server.
func (s *Sources) serviceVariables(pod *core.Pod) map[string]string {
	variables := map[string]string{}
	if s.Services == nil {
		return variables
	}
	for _, service := range s.Services(core.NamespaceDefault) {
		if service.Name == "kubernetes" {
			addService(variables, service)
		}
	}
	if links := pod.Spec.EnableServiceLinks; links == nil || *links {
		for _, service := range s.Services(pod.Namespace) {
			addService(variables, service)
		}
	}
	return variables
}

func addService(variables map[string]string, service *corev1.Service) {
	ip := service.Spec.ClusterIP
	if ip == "" || ip == corev1.ClusterIPNone || len(service.Spec.Ports) == 0 {
		return
	}
	name := variableName(service.Name)
	first := service.Spec.Ports[0]
	variables[name+"_SERVICE_HOST"] = ip
	variables[name+"_SERVICE_PORT"] = strconv.Itoa(int(first.Port))
	variables[name+"_PORT"] = serviceURL(ip, first)
	for _, port := range service.Spec.Ports {
		if port.Name != "" {
			variables[name+"_SERVICE_PORT_"+variableName(port.Name)] = strconv.Itoa(int(port.Port))
		}
		protocol := portProtocol(port)
		prefix := fmt.Sprintf("%s_PORT_%d_%s", name, port.Port, strings.ToUpper(protocol))
		variables[prefix] = serviceURL(ip, port)
		variables[prefix+"_PROTO"] = protocol
		variables[prefix+"_PORT"] = strconv.Itoa(int(port.Port))
		variables[prefix+"_ADDR"] = ip
	}
}

func serviceURL(ip string, port corev1.ServicePort) string {
	return portProtocol(port) + "://" + net.JoinHostPort(ip, strconv.Itoa(int(port.Port)))
}

func portProtocol(port corev1.ServicePort) string {
	if port.Protocol == "" {
		return "tcp"
	}
	return strings.ToLower(string(port.Protocol))
}

func variableName(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
