package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/resources/check"
)

// oldAnnotations are what pods were told by before there were fields for it;
// those that end with a slash have a container's name behind it.
var oldAnnotations = []struct{ key, says string }{
	{"seccomp.security.alpha.kubernetes.io/pod", `non-functional in v1.27+; use the "seccompProfile" field instead`},
	{"container.seccomp.security.alpha.kubernetes.io/", `non-functional in v1.27+; use the "seccompProfile" field instead`},
	{"container.apparmor.security.beta.kubernetes.io/", `deprecated since v1.30; use the "appArmorProfile" field instead`},
	{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
	{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
}

func annotationWarnings(annotations map[string]string, at string) []string {
	var out []string
	for key := range annotations {
		for _, old := range oldAnnotations {
			if key == old.key || strings.HasSuffix(old.key, "/") && strings.HasPrefix(key, old.key) {
				out = append(out, fmt.Sprintf("%s.annotations[%s]: %s", at, key, old.says))
			}
		}
	}
	slices.Sort(out)
	return out
}

// keyWarnings tells of a label of nodes that has a newer name.
func keyWarnings(key, at string) []string {
	if text := check.OutdatedLabel(key); text != "" {
		return []string{fmt.Sprintf("%s: %s is %s", at, key, text)}
	}
	return nil
}

// placeWarnings tells of rules about where a pod may run that are outdated, or
// that choose nothing.
func placeWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	for key := range s.NodeSelector {
		if text := check.OutdatedLabel(key); text != "" {
			out = append(out, fmt.Sprintf("%s.nodeSelector[%s]: %s", at, key, text))
		}
	}
	slices.Sort(out)
	if s.Affinity != nil {
		out = append(out, affinityWarnings(s.Affinity, at+".affinity")...)
	}
	for i := range s.TopologySpreadConstraints {
		c, path := &s.TopologySpreadConstraints[i], fmt.Sprintf("%s.topologySpreadConstraints[%d]", at, i)
		out = append(out, keyWarnings(c.TopologyKey, path+".topologyKey")...)
		if c.LabelSelector == nil {
			out = append(out, path+nullSelector)
		}
	}
	return out
}

const (
	nullSelector = ".labelSelector: a null labelSelector results in matching no pod"
	required     = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred    = "preferredDuringSchedulingIgnoredDuringExecution"
)

func affinityWarnings(a *corev1.Affinity, at string) []string {
	var out []string
	if n := a.NodeAffinity; n != nil {
		if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			out = append(out, NodeSelectorWarnings(r, fmt.Sprintf("%s.nodeAffinity.%s", at, required))...)
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			term := &n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference
			out = append(out, termWarnings(term, fmt.Sprintf("%s.nodeAffinity.%s[%d].preference", at, preferred, i))...)
		}
	}
	if p := a.PodAffinity; p != nil {
		out = append(out, podTermWarnings(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, at+".podAffinity")...)
	}
	if p := a.PodAntiAffinity; p != nil {
		out = append(out, podTermWarnings(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, at+".podAntiAffinity")...)
	}
	return out
}

// NodeSelectorWarnings tells of labels in a choice of nodes that have newer names.
func NodeSelectorWarnings(s *corev1.NodeSelector, at string) []string {
	var out []string
	for i := range s.NodeSelectorTerms {
		out = append(out, termWarnings(&s.NodeSelectorTerms[i], fmt.Sprintf("%s.nodeSelectorTerms[%d]", at, i))...)
	}
	return out
}

func termWarnings(term *corev1.NodeSelectorTerm, at string) []string {
	var out []string
	for i, e := range term.MatchExpressions {
		out = append(out, keyWarnings(e.Key, fmt.Sprintf("%s.matchExpressions[%d].key", at, i))...)
	}
	return out
}

func podTermWarnings(must []corev1.PodAffinityTerm, should []corev1.WeightedPodAffinityTerm, at string) []string {
	var out []string
	for i := range must {
		if must[i].LabelSelector == nil {
			out = append(out, fmt.Sprintf("%s.%s[%d]", at, required, i)+nullSelector)
		}
	}
	for i := range should {
		if should[i].PodAffinityTerm.LabelSelector == nil {
			out = append(out, fmt.Sprintf("%s.%s[%d].podAffinityTerm", at, preferred, i)+nullSelector)
		}
	}
	return out
}
