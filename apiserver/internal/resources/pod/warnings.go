package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// warnings tells users of what is allowed and probably not meant.
func warnings(pod *core.Pod) []string {
	var out []string
	for i, secret := range pod.Spec.ImagePullSecrets {
		if secret.Name == "" {
			out = append(out, fmt.Sprintf("spec.imagePullSecrets[%d].name: invalid empty name %q", i, secret.Name))
		}
	}
	for _, group := range []struct {
		name       string
		containers []core.Container
	}{{"initContainers", pod.Spec.InitContainers}, {"containers", pod.Spec.Containers}} {
		for i := range group.containers {
			c := &group.containers[i]
			path := fmt.Sprintf("spec.%s[%d]", group.name, i)
			out = append(out, portWarnings(c, path)...)
			out = append(out, envWarnings(c, path)...)
		}
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		out = append(out, "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
	}
	return out
}

func portWarnings(c *core.Container, path string) []string {
	var out []string
	type place struct {
		port     int32
		protocol corev1.Protocol
		hostPort int32
		hostIP   string
	}
	seen := map[place]int{}
	for i, port := range c.Ports {
		at := place{port.ContainerPort, port.Protocol, port.HostPort, port.HostIP}
		if first, twice := seen[at]; twice {
			out = append(out, fmt.Sprintf("%s.ports[%d]: duplicate port definition with %s.ports[%d]", path, i, path, first))
			continue
		}
		seen[at] = i
	}
	return out
}

func envWarnings(c *core.Container, path string) []string {
	var out []string
	seen := map[string]bool{}
	for i, env := range c.Env {
		if seen[env.Name] {
			out = append(out, fmt.Sprintf("%s.env[%d]: hides previous definition of %q, which may be dropped when using apply", path, i, env.Name))
		}
		seen[env.Name] = true
	}
	return out
}
