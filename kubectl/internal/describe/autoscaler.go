package describe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

func (p *page) horizontalAutoscaler(h *autoscaler, events []core.Event) {
	p.names(&h.ObjectMeta)
	p.marks(&h.ObjectMeta)
	p.line("CreationTimestamp", "%s", h.CreationTimestamp.Format(timeFormat))
	of := h.Spec.ScaleTargetRef
	p.line("Reference", "%s/%s", of.Kind, of.Name)
	p.line("Metrics", "( current / target )")
	for i := range h.Spec.Metrics {
		var now *metricSpec
		if i < len(h.Status.CurrentMetrics) {
			now = &h.Status.CurrentMetrics[i]
		}
		name, current, target := metric(&h.Spec.Metrics[i], now)
		p.under(func() { p.line(name, "%s / %s", current, target) })
	}
	p.line("Min replicas", "%s", formatNumber(h.Spec.MinReplicas, ""))
	p.line("Max replicas", "%d", h.Spec.MaxReplicas)
	if behavior := h.Spec.Behavior; behavior != nil {
		p.text("Behavior:")
		p.under(func() {
			p.scaling("Scale Up", behavior.ScaleUp)
			p.scaling("Scale Down", behavior.ScaleDown)
		})
	}
	p.line(of.Kind+" pods", "%d current / %d desired", h.Status.CurrentReplicas, h.Status.DesiredReplicas)
	conditions(p, h.Status.Conditions, []string{"Type\tStatus\tReason\tMessage", "----\t------\t------\t-------"}, func(c condition) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s", c.Type, c.Status, c.Reason, c.Message)
	})
	p.events(events)
}

func (p *page) scaling(label string, rules *scalingRules) {
	if rules == nil {
		return
	}
	p.text("%s:", label)
	p.under(func() {
		if rules.StabilizationWindowSeconds != nil {
			p.text("Stabilization Window: %d seconds", *rules.StabilizationWindowSeconds)
		}
		if len(rules.Policies) == 0 {
			return
		}
		p.text("Select Policy: %s", ptr.Deref(rules.SelectPolicy, "Max"))
		p.text("Policies:")
		for _, policy := range rules.Policies {
			p.text("  - Type: %s\tValue: %d\tPeriod: %d seconds", policy.Type, policy.Value, policy.PeriodSeconds)
		}
	})
}

const unknownMetric = "<unknown>"

// metric is what is measured, what it is and what it should be. now is nil
// where nothing has been measured yet.
func metric(m, now *metricSpec) (name, current, target string) {
	if now == nil {
		now = &metricSpec{}
	}
	switch {
	case m.Resource != nil:
		return usageOf(fmt.Sprintf("resource %s on pods", m.Resource.Name), m.Resource, now.Resource)
	case m.ContainerResource != nil:
		c := m.ContainerResource
		return usageOf(fmt.Sprintf("resource %s of container %q on pods", c.Name, c.Container), c, now.ContainerResource)
	case m.Pods != nil:
		current, target = average(m.Pods, now.Pods)
		return fmt.Sprintf("%q on pods", m.Pods.Metric.Name), current, target
	case m.Object != nil:
		current, target, how := valueOrAverage(m.Object, now.Object)
		return fmt.Sprintf("%q on %s/%s (%s)", m.Object.Metric.Name, m.Object.DescribedObject.Kind, m.Object.DescribedObject.Name, how), current,
			target
	case m.External != nil:
		current, target, how := valueOrAverage(m.External, now.External)
		return fmt.Sprintf("%q (%s)", m.External.Metric.Name, how), current, target
	}
	return m.Type, unknownMetric, unknownMetric
}

// usageOf is of a resource, whose target is an amount or a part of the request.
func usageOf(name string, m, now *metricSource) (string, string, string) {
	if m.Target.AverageValue != nil {
		current, wanted := average(m, now)
		return name, current, wanted
	}
	current := unknownMetric
	if now != nil && now.Current.AverageUtilization != nil {
		current = fmt.Sprintf("%d%% (%s)", *now.Current.AverageUtilization, amount(now.Current.AverageValue))
	}
	wanted := "<auto>"
	if m.Target.AverageUtilization != nil {
		wanted = fmt.Sprintf("%d%%", *m.Target.AverageUtilization)
	}
	return name + "  (as a percentage of request)", current, wanted
}

func amount(q *resource.Quantity) string {
	if q == nil {
		return unknownMetric
	}
	return q.String()
}

func average(m, now *metricSource) (current, wanted string) {
	current = unknownMetric
	if now != nil {
		current = amount(now.Current.AverageValue)
	}
	return current, amount(m.Target.AverageValue)
}

// valueOrAverage is of a metric whose target is a value, or one for each pod.
func valueOrAverage(m, now *metricSource) (current, wanted, how string) {
	if m.Target.Type == "AverageValue" {
		current, wanted = average(m, now)
		return current, wanted, "target average value"
	}
	current = unknownMetric
	if now != nil {
		current = amount(now.Current.Value)
	}
	return current, amount(m.Target.Value), "target value"
}
