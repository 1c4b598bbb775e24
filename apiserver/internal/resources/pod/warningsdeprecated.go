package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/resources/check"
)

// outdatedAnnotations have been replaced by fields.
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

// seccompOfPodWarnings warns about the annotation if the field is not set.
func seccompOfPodWarnings(annotations map[string]string, s *corev1.PodSpec, at string) []string {
	if _, has := annotations[seccompPodAnnotation]; has && (s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil) {
		return []string{annotationWarning(at, seccompPodAnnotation, outdatedSeccomp)}
	}
	return nil
}

// profileWarnings warns about a container's annotations if the fields are not set.
func profileWarnings(annotations map[string]string, s *corev1.PodSpec, c *corev1.Container, at string) []string {
	if len(annotations) == 0 {
		return nil
	}
	var out []string
	sc := c.SecurityContext
	if _, has := annotations[seccompContainerPrefix+c.Name]; has && (sc == nil || sc.SeccompProfile == nil) {
		out = append(out, annotationWarning(at, seccompContainerPrefix+c.Name, outdatedSeccomp))
	}
	if at == podMeta {
		return out
	}
	value, has := annotations[appArmorContainerPrefix+c.Name]
	if !has || sc != nil && sc.AppArmorProfile != nil {
		return out
	}
	if p, ok := profileOf(value); ok && s.SecurityContext != nil && sameAppArmor(s.SecurityContext.AppArmorProfile, p) {
		return out
	}
	return append(out, annotationWarning(at, appArmorContainerPrefix+c.Name, outdatedAppArmor))
}

// keyWarnings warns about a deprecated node label.
func keyWarnings(key, at string) []string {
	if text := check.NodeLabelWarning(key); text != "" {
		return []string{fmt.Sprintf("%s: %s is %s", at, key, text)}
	}
	return nil
}

// schedulingWarnings warns about outdated scheduling constraints, and those that select no
// pods.
func schedulingWarnings(s *corev1.PodSpec, at string) []string {
	var out []string
	for key := range s.NodeSelector {
		if text := check.NodeLabelWarning(key); text != "" {
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
			term, path := &n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference,
				fmt.Sprintf("%s.nodeAffinity.%s[%d].preference", at, preferred, i)
			out = append(out, termWarnings(term, path, true)...)
		}
	}
	return out
}

// podTermsWarnings warns about pod affinity terms that select no pods.
func podTermsWarnings(a *corev1.Affinity, at string) []string {
	var out []string
	if p := a.PodAffinity; p != nil {
		must, should := p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution
		out = append(out, podTermWarnings(must, should, at+".podAffinity")...)
	}
	if p := a.PodAntiAffinity; p != nil {
		must, should := p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution
		out = append(out, podTermWarnings(must, should, at+".podAntiAffinity")...)
	}
	return out
}

// NodeSelectorWarnings warns about deprecated labels in a node selector.
func NodeSelectorWarnings(s *corev1.NodeSelector, at string) []string {
	var out []string
	for i := range s.NodeSelectorTerms {
		out = append(out, termWarnings(&s.NodeSelectorTerms[i], fmt.Sprintf("%s.nodeSelectorTerms[%d]", at, i), false)...)
	}
	return out
}

// termWarnings warns about deprecated labels, and about invalid label values where
// these are not refused, as they are in required terms.
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
