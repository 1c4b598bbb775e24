package describe

import (
	"bufio"
	"io"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

// PodTemplate describes a pod template by itself. Its values do not line up: they are
// behind tabs, as kubectl has them in `rollout`.
func PodTemplate(w io.Writer, template *corev1.PodTemplateSpec) error {
	lines := bufio.NewWriter(printer.VisibleTo(w))
	p := &page{tabs: lines, done: lines.Flush}
	p.template(template)
	return p.done()
}

// template writes what there is to say about a pod template, under a head of
// its own. The names of its containers stand one space in, as kubectl has them.
func (p *page) template(template *corev1.PodTemplateSpec) {
	p.head("Pod Template")
	p.under(func() {
		p.pairs("Labels", template.Labels)
		if len(template.Annotations) > 0 {
			p.annotations(template.Annotations)
		}
		if template.Spec.ServiceAccountName != "" {
			p.line("Service Account", "%s", template.Spec.ServiceAccountName)
		}
		if len(template.Spec.InitContainers) > 0 {
			p.templateContainers("Init Containers", template.Spec.InitContainers)
		}
		p.templateContainers("Containers", template.Spec.Containers)
		p.volumes(template.Spec.Volumes)
		p.spread(template.Spec.TopologySpreadConstraints)
		if template.Spec.PriorityClassName != "" {
			p.line("Priority Class Name", "%s", template.Spec.PriorityClassName)
		}
		p.pairs("Node-Selectors", template.Spec.NodeSelector)
		p.tolerations(template.Spec.Tolerations)
		p.schedulingGroup(template.Spec.SchedulingGroup)
	})
}

func (p *page) templateContainers(label string, containers []core.Container) {
	p.head(label)
	for i := range containers {
		p.text(" %s:", containers[i].Name)
		p.under(func() { p.container(&containers[i], nil) })
	}
}
