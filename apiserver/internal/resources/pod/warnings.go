package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// warnings tells users of what is allowed and probably not meant. Each pod that
// is made passes here, so that a place is spelled only where there is something
// to say of it.
func warnings(pod *core.Pod) []string {
	var out []string
	if texts := check.LabelProblems(pod.Name); len(texts) > 0 && pod.Name != "" {
		out = append(out, fmt.Sprintf("metadata.name: this is used in the Pod's hostname, "+
			"which can result in surprising behavior; a DNS label is recommended: %v", texts))
	}
	return append(out, specWarnings(&pod.ObjectMeta, &pod.Spec, "metadata", "spec")...)
}

// TemplateWarnings are those of the pods that a template makes. old is what it
// was before, nil where it is new: whoever leaves it alone is told nothing.
func TemplateWarnings(t, old *corev1.PodTemplateSpec, at string) []string {
	if old != nil && equality.Semantic.DeepEqual(t, old) {
		return nil
	}
	return specWarnings(&t.ObjectMeta, &t.Spec, at+".metadata", at+".spec")
}

func specWarnings(m *metav1.ObjectMeta, s *corev1.PodSpec, metaAt, at string) []string {
	out := append(annotationWarnings(m.Annotations, s, metaAt), placeWarnings(s, at)...)
	for i := range s.Volumes {
		out = append(out, volumeWarnings(&s.Volumes[i], at, i)...)
	}
	out = append(out, twiceWarnings(s, at)...)
	for i := range s.InitContainers {
		out = append(out, containerWarnings(&s.InitContainers[i], spot{at, "initContainers", i})...)
	}
	for i := range s.Containers {
		out = append(out, containerWarnings(&s.Containers[i], spot{at, "containers", i})...)
	}
	out = append(out, portWarnings(s, at)...)
	return append(out, addressWarnings(s, at)...)
}

// twiceWarnings tells of what is there twice, or is there and says nothing.
func twiceWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	for i, alias := range s.HostAliases {
		if slices.ContainsFunc(s.HostAliases[:i], func(a corev1.HostAlias) bool { return a.IP == alias.IP }) {
			out = append(out, fmt.Sprintf("%s.hostAliases[%d].ip: duplicate ip %q", at, i, alias.IP))
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			out = append(out, fmt.Sprintf("%s.imagePullSecrets[%d].name: invalid empty name %q", at, i, secret.Name))
		}
		if slices.Contains(s.ImagePullSecrets[:i], secret) {
			out = append(out, fmt.Sprintf("%s.imagePullSecrets[%d].name: duplicate name %q", at, i, secret.Name))
		}
	}
	return out
}

// addressWarnings tells of addresses that are written in an unusual way.
func addressWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	if s.DNSConfig != nil {
		for i, server := range s.DNSConfig.Nameservers {
			out = append(out, validation.GetWarningsForIP(field.NewPath(at, "dnsConfig", "nameservers").Index(i).Upstream(), server)...)
		}
	}
	for i, alias := range s.HostAliases {
		out = append(out, validation.GetWarningsForIP(field.NewPath(at, "hostAliases").Index(i).Child("ip").Upstream(), alias.IP)...)
	}
	return out
}

// spot is where a container is.
type spot struct {
	spec, group string
	index       int
}

func (s spot) String() string { return fmt.Sprintf("%s.%s[%d]", s.spec, s.group, s.index) }

// portPlace is what no two ports should share.
type portPlace struct {
	port     int32
	protocol corev1.Protocol
	hostPort int32
	hostIP   string
}

// portSpot is where a port is.
type portSpot struct {
	container spot
	index     int
}

func (s portSpot) String() string { return fmt.Sprintf("%s.ports[%d]", s.container, s.index) }

func portWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	seen := map[portPlace]portSpot{}
	look := func(c *core.Container, here spot) {
		for i, port := range c.Ports {
			place, now := portPlace{port.ContainerPort, port.Protocol, port.HostPort, port.HostIP}, portSpot{here, i}
			if first, twice := seen[place]; twice {
				out = append(out, fmt.Sprintf("%s: duplicate port definition with %s", now, first))
				continue
			}
			seen[place] = now
		}
	}
	for i := range s.InitContainers {
		look(&s.InitContainers[i], spot{at, "initContainers", i})
	}
	for i := range s.Containers {
		look(&s.Containers[i], spot{at, "containers", i})
	}
	return out
}

func containerWarnings(c *core.Container, at spot) []string {
	var out []string
	for _, name := range []corev1.ResourceName{corev1.ResourceEphemeralStorage, corev1.ResourceMemory} {
		if check.Fractional(c.Resources.Limits, name) {
			out = append(out, check.FractionWarning(at.String()+".resources.limits", c.Resources.Limits, name))
		}
		if check.Fractional(c.Resources.Requests, name) {
			out = append(out, check.FractionWarning(at.String()+".resources.requests", c.Resources.Requests, name))
		}
	}
	seen := map[string]bool{}
	for i, env := range c.Env {
		// One that is made of the one before hides nothing.
		if seen[env.Name] && !strings.Contains(env.Value, "$("+env.Name+")") {
			out = append(out, fmt.Sprintf("%s.env[%d]: hides previous definition of %q, which may be dropped when using apply", at, i, env.Name))
		}
		seen[env.Name] = true
	}
	return out
}
