package pod

import (
	"fmt"
	"slices"

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
	return append(out, specWarnings(&pod.ObjectMeta, &pod.Spec, podMeta, "spec")...)
}

// podMeta is where the metadata of a pod is, as opposed to that of a template.
const podMeta = "metadata"

// TemplateWarnings are those of the pods that a template makes. old is what it
// was before, nil where it is new: whoever leaves it alone is told nothing.
func TemplateWarnings(t, old *corev1.PodTemplateSpec, at string) []string {
	if old != nil && equality.Semantic.DeepEqual(t, old) {
		return nil
	}
	return specWarnings(&t.ObjectMeta, &t.Spec, at+".metadata", at+".spec")
}

// specWarnings are told in upstream's order; where it has none, in that of names.
// Of a pod, the annotations of AppArmor have been told of as it was filled in.
func specWarnings(m *metav1.ObjectMeta, s *corev1.PodSpec, metaAt, at string) []string {
	out := append(placeWarnings(s, at), annotationWarnings(m.Annotations, metaAt)...)
	for i := range s.Volumes {
		out = append(out, volumeWarnings(&s.Volumes[i], at, i)...)
	}
	for i := range s.Volumes {
		out = append(out, overlapWarnings(&s.Volumes[i])...)
	}
	out = append(out, twiceWarnings(s, at)...)
	out = append(out, fractionWarnings(at+".overhead", s.Overhead)...)
	out = append(out, seccompOfPodWarnings(m.Annotations, s, metaAt)...)
	spots := containersAt(s, at)
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

// twiceWarnings tells of what is there twice, or is there and says nothing.
func twiceWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	for i, alias := range s.HostAliases {
		if slices.ContainsFunc(s.HostAliases[:i], func(a corev1.HostAlias) bool { return a.IP == alias.IP }) {
			out = append(out, fmt.Sprintf("%s.hostAliases[%d].ip: duplicate ip %q", at, i, alias.IP))
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if slices.Contains(s.ImagePullSecrets[:i], secret) {
			out = append(out, fmt.Sprintf("%s.imagePullSecrets[%d].name: duplicate name %q", at, i, secret.Name))
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			out = append(out, fmt.Sprintf("%s.imagePullSecrets[%d].name: invalid empty name %q", at, i, secret.Name))
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
