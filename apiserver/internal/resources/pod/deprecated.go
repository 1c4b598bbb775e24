package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/resources/check"
)

// annotationWarnings tells of annotations that have become fields, where the
// fields don't say it too.
func annotationWarnings(annotations map[string]string, s *corev1.PodSpec, at string) []string {
	var out []string
	for key := range annotations {
		if says := outdatedAnnotation(key, s); says != "" {
			out = append(out, fmt.Sprintf("%s.annotations[%s]: %s", at, key, says))
		}
	}
	slices.Sort(out)
	return out
}

func outdatedAnnotation(key string, s *corev1.PodSpec) string {
	const seccomp = `non-functional in v1.27+; use the "seccompProfile" field instead`
	switch key {
	case "scheduler.alpha.kubernetes.io/critical-pod":
		return `non-functional in v1.16+; use the "priorityClassName" field instead`
	case "security.alpha.kubernetes.io/sysctls", "security.alpha.kubernetes.io/unsafe-sysctls":
		return `non-functional in v1.11+; use the "sysctls" field instead`
	case seccompOfPod:
		if s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil {
			return seccomp
		}
		return ""
	}
	if name, ok := strings.CutPrefix(key, seccompOfContainer); ok {
		for c := range allContainers(s, nil) {
			if c.Name == name && (c.SecurityContext == nil || c.SecurityContext.SeccompProfile == nil) {
				return seccomp
			}
		}
	}
	if strings.HasPrefix(key, apparmor) {
		return `deprecated since v1.30; use the "appArmorProfile" field instead`
	}
	return ""
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
			term, path := &n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, fmt.Sprintf("%s.nodeAffinity.%s[%d].preference", at, preferred, i)
			out = append(out, termWarnings(term, path)...)
			out = append(out, valueWarnings(term, path)...)
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

// valueWarnings tells of values that no label has. They are refused where they
// are required.
func valueWarnings(term *corev1.NodeSelectorTerm, at string) []string {
	var out []string
	for i, e := range term.MatchExpressions {
		for j, value := range e.Values {
			for _, text := range validation.IsValidLabelValue(value) {
				out = append(out, fmt.Sprintf("%s.matchExpressions[%d].values[%d]: %s is invalid, %s", at, i, j, value, text))
			}
		}
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
