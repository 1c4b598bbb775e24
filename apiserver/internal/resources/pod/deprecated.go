package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/resources/check"
)

// outdatedAnnotations have become fields.
var outdatedAnnotations = [...]struct{ key, says string }{
	{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
	{"security.alpha.kubernetes.io/sysctls", outdatedSysctls}, {"security.alpha.kubernetes.io/unsafe-sysctls", outdatedSysctls},
}

const (
	outdatedSysctls  = `non-functional in v1.11+; use the "sysctls" field instead`
	outdatedSeccomp  = `non-functional in v1.27+; use the "seccompProfile" field instead`
	outdatedAppArmor = `deprecated since v1.30; use the "appArmorProfile" field instead`
)

func annotationWarnings(annotations map[string]string, at string) []string {
	if len(annotations) == 0 {
		return nil
	}
	var out []string
	for _, a := range outdatedAnnotations {
		if _, has := annotations[a.key]; has {
			out = append(out, annotationWarning(at, a.key, a.says))
		}
	}
	return out
}

func annotationWarning(at, key, says string) string {
	return fmt.Sprintf("%s.annotations[%s]: %s", at, key, says)
}

// seccompOfPodWarnings tells of the annotation where no field says it too.
func seccompOfPodWarnings(annotations map[string]string, s *corev1.PodSpec, at string) []string {
	if _, has := annotations[seccompOfPod]; has && (s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil) {
		return []string{annotationWarning(at, seccompOfPod, outdatedSeccomp)}
	}
	return nil
}

// profileWarnings tells of a container's annotations where no field says it too.
func profileWarnings(annotations map[string]string, s *corev1.PodSpec, c *corev1.Container, at string) []string {
	if len(annotations) == 0 {
		return nil
	}
	var out []string
	sc := c.SecurityContext
	if _, has := annotations[seccompOfContainer+c.Name]; has && (sc == nil || sc.SeccompProfile == nil) {
		out = append(out, annotationWarning(at, seccompOfContainer+c.Name, outdatedSeccomp))
	}
	if at == podMeta {
		return out
	}
	value, has := annotations[apparmor+c.Name]
	if !has || sc != nil && sc.AppArmorProfile != nil {
		return out
	}
	if p, ok := profileOf(value); ok && s.SecurityContext != nil && sameAppArmor(s.SecurityContext.AppArmorProfile, p) {
		return out
	}
	return append(out, annotationWarning(at, apparmor+c.Name, outdatedAppArmor))
}

// keyWarnings tells of a label of nodes that has a newer name.
func keyWarnings(key, at string) []string {
	if text := check.OutdatedLabel(key); text != "" {
		return []string{fmt.Sprintf("%s: %s is %s", at, key, text)}
	}
	return nil
}

// placeWarnings tells of rules about nodes that are outdated, or that count no pods.
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
			out = append(out, termWarnings(term, path, true)...)
		}
	}
	return out
}

// podTermsWarnings tells of rules about other pods that choose none.
func podTermsWarnings(a *corev1.Affinity, at string) []string {
	var out []string
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
		out = append(out, termWarnings(&s.NodeSelectorTerms[i], fmt.Sprintf("%s.nodeSelectorTerms[%d]", at, i), false)...)
	}
	return out
}

// termWarnings tells of labels that have newer names, and of values that no label has
// where these are not refused, as those that are required are.
func termWarnings(term *corev1.NodeSelectorTerm, at string, values bool) []string {
	var out []string
	for i, e := range term.MatchExpressions {
		out = append(out, keyWarnings(e.Key, fmt.Sprintf("%s.matchExpressions[%d].key", at, i))...)
		if !values {
			continue
		}
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
