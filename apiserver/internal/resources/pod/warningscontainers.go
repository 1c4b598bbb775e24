package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// containerPosition is the position of a container.
type containerPosition struct {
	container   *core.Container
	spec, group string
	index       int
}

func (s containerPosition) String() string { return fmt.Sprintf("%s.%s[%d]", s.spec, s.group, s.index) }

// containerPositions are all containers of a pod, including ephemeral ones.
func containerPositions(s *corev1.PodSpec, at string) []containerPosition {
	spots := make([]containerPosition, 0, len(s.InitContainers)+len(s.Containers)+len(s.EphemeralContainers))
	for i := range s.InitContainers {
		spots = append(spots, containerPosition{&s.InitContainers[i], at, "initContainers", i})
	}
	for i := range s.Containers {
		spots = append(spots, containerPosition{&s.Containers[i], at, "containers", i})
	}
	for i := range s.EphemeralContainers {
		c := core.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		spots = append(spots, containerPosition{&c, at, "ephemeralContainers", i})
	}
	return spots
}

// fractionWarnings warns about fractional bytes.
func fractionWarnings(at string, amounts corev1.ResourceList) []string {
	var out []string
	for _, name := range [...]corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if check.HasFractionalBytes(amounts, name) {
			out = append(out, check.FractionalBytesWarning(at, amounts, name))
		}
	}
	return out
}

func containerWarnings(at containerPosition) []string {
	var out []string
	c := at.container
	for _, name := range [...]corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if check.HasFractionalBytes(c.Resources.Limits, name) {
			out = append(out, check.FractionalBytesWarning(at.String()+".resources.limits", c.Resources.Limits, name))
		}
		if check.HasFractionalBytes(c.Resources.Requests, name) {
			out = append(out, check.FractionalBytesWarning(at.String()+".resources.requests", c.Resources.Requests, name))
		}
	}
	if len(c.Env) < 2 {
		return out
	}
	seen := map[string]bool{}
	for i, env := range c.Env {
		// One that refers to the earlier one, and to something else, hides nothing.
		before := "$(" + env.Name + ")"
		if seen[env.Name] && (env.ValueFrom != nil || env.Value == before || !strings.Contains(env.Value, before)) {
			out = append(out, fmt.Sprintf("%s.env[%d]: hides previous definition of %q, which may be dropped when using apply", at, i, env.Name))
		}
		seen[env.Name] = true
	}
	return out
}

// portKey is what conflicting ports have in common.
type portKey struct {
	port     int32
	protocol corev1.Protocol
}

// portPosition is the position of a port.
type portPosition struct {
	container containerPosition
	index     int
}

func (s portPosition) port() *corev1.ContainerPort { return &s.container.container.Ports[s.index] }

func (s portPosition) String() string { return fmt.Sprintf("%s.ports[%d]", s.container, s.index) }

// portWarnings warns about conflicting ports, and then about shared names. Each port
// is compared with all earlier ones; at most maxOverlaps warnings are given.
func portWarnings(spots []containerPosition) []string {
	var out []string
	seen, named := map[portKey][]portPosition{}, map[string]portPosition{}
	var names []string
	for _, container := range spots {
		for i := range container.container.Ports {
			now := portPosition{container, i}
			port := now.port()
			if port.HostIP != "" && port.HostPort == 0 {
				out = append(out, fmt.Sprintf("%s: hostIP set without hostPort: %+v", now, *port))
			}
			key := portKey{port.ContainerPort, port.Protocol}
			for _, before := range seen[key][:min(len(seen[key]), maxCompared)] {
				if how := portConflict(port, before.port()); how != "" && len(out) < maxOverlaps {
					out = append(out, fmt.Sprintf("%s: %s port definition with %s", now, how, before))
				}
			}
			seen[key] = append(seen[key], now)
			if port.Name == "" {
				continue
			}
			if first, taken := named[port.Name]; taken {
				names = append(names, fmt.Sprintf("%s: duplicate port name %q with %s, services and probes that select ports by name will use %s",
					now, port.Name, first, first))
			} else {
				named[port.Name] = now
			}
		}
	}
	return append(out, names...)
}

// portConflict says how two ports with the same number and protocol conflict, "" if they
// don't.
func portConflict(a, b *corev1.ContainerPort) string {
	switch {
	case a.HostIP == b.HostIP && a.HostPort == b.HostPort:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "") != (b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}
