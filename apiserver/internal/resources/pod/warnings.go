package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// warnings warns about what is allowed but probably unintended. Every new pod
// passes here, so paths are formatted only for a warning.
func warnings(pod *core.Pod) []string {
	var out []string
	if texts := check.LabelProblems(pod.Name); len(texts) > 0 && pod.Name != "" {
		out = append(out, fmt.Sprintf("metadata.name: this is used in the Pod's hostname, "+
			"which can result in surprising behavior; a DNS label is recommended: %v", texts))
	}
	return append(out, specWarnings(&pod.ObjectMeta, &pod.Spec, podMeta, "spec")...)
}

// podMeta is the path of a pod's metadata, as opposed to a template's.
const podMeta = "metadata"

// TemplateWarnings are the warnings for a pod template. old is the earlier one,
// nil if it is new: an unchanged template has no warnings.
func TemplateWarnings(t, old *corev1.PodTemplateSpec, at string) []string {
	if old != nil && equality.Semantic.DeepEqual(t, old) {
		return nil
	}
	return specWarnings(&t.ObjectMeta, &t.Spec, at+".metadata", at+".spec")
}

// specWarnings are in upstream's order; where it has none, ordered by name. For a
// pod, defaulting has already warned about AppArmor annotations.
func specWarnings(m *metav1.ObjectMeta, s *corev1.PodSpec, metaAt, at string) []string {
	out := append(schedulingWarnings(s, at), annotationWarnings(m.Annotations, metaAt)...)
	for i := range s.Volumes {
		out = append(out, volumeWarnings(&s.Volumes[i], at, i)...)
	}
	for i := range s.Volumes {
		out = append(out, overlapWarnings(&s.Volumes[i])...)
	}
	out = append(out, duplicateWarnings(s, at)...)
	out = append(out, fractionWarnings(at+".overhead", s.Overhead)...)
	out = append(out, seccompOfPodWarnings(m.Annotations, s, metaAt)...)
	spots := containerPositions(s, at)
	for _, here := range spots {
		out = append(out, profileWarnings(m.Annotations, s, here.container, metaAt)...)
		out = append(out, containerWarnings(here)...)
	}
	out = append(out, portWarnings(spots)...)
	if grace := s.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		out = append(out, at+".terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
	}
	if s.Affinity != nil {
		out = append(out, podTermsWarnings(s.Affinity, at+".affinity")...)
	}
	return append(out, addressWarnings(s, at)...)
}

// duplicateWarnings warns about duplicates, and about empty entries.
func duplicateWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	ips, names := map[string]bool{}, map[string]bool{}
	for i, alias := range s.HostAliases {
		if ips[alias.IP] {
			out = append(out, fmt.Sprintf("%s.hostAliases[%d].ip: duplicate ip %q", at, i, alias.IP))
		}
		ips[alias.IP] = true
	}
	for i, secret := range s.ImagePullSecrets {
		if names[secret.Name] {
			out = append(out, fmt.Sprintf("%s.imagePullSecrets[%d].name: duplicate name %q", at, i, secret.Name))
		}
		names[secret.Name] = true
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			out = append(out, fmt.Sprintf("%s.imagePullSecrets[%d].name: invalid empty name %q", at, i, secret.Name))
		}
	}
	return out
}

// statusWarnings warns about reported addresses in a non-canonical form.
func statusWarnings(s *corev1.PodStatus) []string {
	var out []string
	for i, address := range s.PodIPs {
		out = append(out, validation.GetWarningsForIP(field.NewPath("status", "podIPs").Index(i).Child("ip").Upstream(), address.IP)...)
	}
	for i, address := range s.HostIPs {
		out = append(out, validation.GetWarningsForIP(field.NewPath("status", "hostIPs").Index(i).Child("ip").Upstream(), address.IP)...)
	}
	return out
}

// addressWarnings warns about addresses in a non-canonical form.
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
