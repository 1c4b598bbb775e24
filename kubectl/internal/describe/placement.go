package describe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func (p *page) tolerations(tolerations []corev1.Toleration) {
	if len(tolerations) == 0 {
		p.line("Tolerations", "<none>")
		return
	}
	tolerations = slices.Clone(tolerations)
	slices.SortStableFunc(tolerations, func(a, b corev1.Toleration) int { return strings.Compare(a.Key, b.Key) })
	var texts []string
	for _, t := range tolerations {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		if t.Effect != "" {
			text += ":" + string(t.Effect)
		}
		if t.Operator == corev1.TolerationOpExists && t.Value == "" {
			text = strings.TrimPrefix(text+" op=Exists", " ")
		}
		if t.TolerationSeconds != nil {
			text += fmt.Sprintf(" for %ds", *t.TolerationSeconds)
		}
		texts = append(texts, text)
	}
	p.column("Tolerations", "", texts)
}

// spread tells how pods are to be spread over the nodes.
func (p *page) spread(constraints []corev1.TopologySpreadConstraint) {
	var texts []string
	for _, c := range constraints {
		text := fmt.Sprintf("%s:%s when max skew %d is exceeded", c.TopologyKey, c.WhenUnsatisfiable, c.MaxSkew)
		if c.LabelSelector != nil {
			text += " for selector " + metav1.FormatLabelSelector(c.LabelSelector)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	p.column("Topology Spread Constraints", strings.Repeat("  ", p.level), texts)
}

// schedulingGroup names the group of pods that are placed together. Its name stands where
// kubectl has it, one level in at most.
func (p *page) schedulingGroup(group *corev1.PodSchedulingGroup) {
	if group != nil {
		p.head("SchedulingGroup")
		fmt.Fprintf(p.tabs, "  PodGroupName:\t%s\n", ptr.Deref(group.PodGroupName, ""))
	}
}

// column writes texts below each other, after one label; indent is before all but the first.
func (p *page) column(label, indent string, texts []string) {
	head := strings.Repeat("  ", p.level) + label + ":"
	for _, text := range texts {
		fmt.Fprintf(p.tabs, "%s\t%s\n", head, text)
		head = indent
	}
}
