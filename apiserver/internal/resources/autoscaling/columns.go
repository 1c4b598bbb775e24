package autoscaling

import (
	"fmt"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/resources/cell"
)

const (
	unknown = "<unknown>"
	// maxShownMetrics is how many metrics fit into one cell.
	maxShownMetrics = 2
)

func row(a *autoscalingv2.HorizontalPodAutoscaler, clock clock.PassiveClock) []any {
	smallest := "<unset>"
	if a.Spec.MinReplicas != nil {
		smallest = strconv.Itoa(int(*a.Spec.MinReplicas))
	}
	return []any{
		a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name, targets(a), smallest, int64(a.Spec.MaxReplicas),
		int64(a.Status.CurrentReplicas), cell.Age(clock.Now(), a.CreationTimestamp),
	}
}

func targets(a *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(a.Spec.Metrics) == 0 {
		return cell.None
	}
	var out []string
	for i := range a.Spec.Metrics {
		var status *autoscalingv2.MetricStatus
		if i < len(a.Status.CurrentMetrics) {
			status = &a.Status.CurrentMetrics[i]
		}
		out = append(out, target(&a.Spec.Metrics[i], status))
	}
	if len(out) > maxShownMetrics {
		return fmt.Sprintf("%s + %d more...", strings.Join(out[:maxShownMetrics], ", "), len(out)-maxShownMetrics)
	}
	return strings.Join(out, ", ")
}

// target is a metric's present and target value.
func target(m *autoscalingv2.MetricSpec, status *autoscalingv2.MetricStatus) string {
	var name string
	var want autoscalingv2.MetricTarget
	var is *autoscalingv2.MetricValueStatus
	perPod := " (avg)"
	switch {
	case m.Resource != nil:
		name, want, perPod = string(m.Resource.Name)+": ", m.Resource.Target, ""
		if status != nil && status.Resource != nil {
			is = &status.Resource.Current
		}
	case m.ContainerResource != nil:
		name, want, perPod = string(m.ContainerResource.Name)+": ", m.ContainerResource.Target, ""
		if status != nil && status.ContainerResource != nil {
			is = &status.ContainerResource.Current
		}
	case m.Pods != nil:
		want, perPod = m.Pods.Target, ""
		if status != nil && status.Pods != nil {
			is = &status.Pods.Current
		}
	case m.Object != nil:
		want = m.Object.Target
		if status != nil && status.Object != nil {
			is = &status.Object.Current
		}
	case m.External != nil:
		want = m.External.Target
		if status != nil && status.External != nil {
			is = &status.External.Current
		}
	default:
		return unknown
	}
	return name + compare(want, is, perPod)
}

func compare(want autoscalingv2.MetricTarget, is *autoscalingv2.MetricValueStatus, perPod string) string {
	current := unknown
	switch {
	case want.AverageValue != nil:
		if is != nil && is.AverageValue != nil {
			current = is.AverageValue.String()
		}
		return current + "/" + want.AverageValue.String() + perPod
	case want.Value != nil:
		if is != nil && is.Value != nil {
			current = is.Value.String()
		}
		return current + "/" + want.Value.String()
	case want.AverageUtilization != nil:
		if is != nil && is.AverageUtilization != nil {
			current = fmt.Sprintf("%d%%", *is.AverageUtilization)
		}
		return current + fmt.Sprintf("/%d%%", *want.AverageUtilization)
	}
	return current + "/<auto>"
}
