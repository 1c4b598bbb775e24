package autoscaling

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// The annotations of version 1 for what it has no fields for.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	currentAnnotation    = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
)

var annotations = []string{metricsAnnotation, currentAnnotation, conditionsAnnotation, behaviorAnnotation}

// convertToV1 converts an autoscaler to version 1: the first metric that is a CPU
// utilization becomes the one with a field.
func convertToV1(stored core.Object) (core.Object, error) {
	a := stored.(*autoscalingv2.HorizontalPodAutoscaler)
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: *a.ObjectMeta.DeepCopy(),
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(a.Spec.ScaleTargetRef),
			MinReplicas:    a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: a.Status.ObservedGeneration, LastScaleTime: a.Status.LastScaleTime,
			CurrentReplicas: a.Status.CurrentReplicas, DesiredReplicas: a.Status.DesiredReplicas,
		},
	}
	dropAnnotations(out.Annotations) // a client of version 2 may have written such
	var metrics []autoscalingv2.MetricSpec
	for i := range a.Spec.Metrics {
		m := &a.Spec.Metrics[i]
		if out.Spec.TargetCPUUtilizationPercentage == nil && isCPU(m) {
			out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
			continue
		}
		metrics = append(metrics, *m)
	}
	for _, m := range a.Status.CurrentMetrics {
		if out.Status.CurrentCPUUtilizationPercentage == nil && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU {
			out.Status.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
	}
	return out, annotate(out, map[string]any{
		metricsAnnotation: orNil(metricsToV1(metrics)), currentAnnotation: orNil(statusesToV1(a.Status.CurrentMetrics)),
		conditionsAnnotation: orNil(a.Status.Conditions),
		behaviorAnnotation:   behaviorToV1(a.Spec.Behavior),
	})
}

// dropAnnotations removes version 1's annotations.
func dropAnnotations(of map[string]string) {
	maps.DeleteFunc(of, func(key, _ string) bool { return slices.Contains(annotations, key) })
}

func isCPU(m *autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU &&
		m.Resource.Target.AverageUtilization != nil
}

// FromVersion1 converts version 1 into an autoscaler.
func FromVersion1(shown, stored core.Object) error {
	from, to := shown.(*autoscalingv1.HorizontalPodAutoscaler), stored.(*autoscalingv2.HorizontalPodAutoscaler)
	*to = autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: *from.ObjectMeta.DeepCopy(),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(from.Spec.ScaleTargetRef),
			MinReplicas:    from.Spec.MinReplicas, MaxReplicas: from.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: from.Status.ObservedGeneration, LastScaleTime: from.Status.LastScaleTime,
			CurrentReplicas: from.Status.CurrentReplicas, DesiredReplicas: from.Status.DesiredReplicas,
		},
	}
	var metrics []autoscalingv1.MetricSpec
	var current []autoscalingv1.MetricStatus
	for annotation, into := range map[string]any{
		metricsAnnotation: &metrics, currentAnnotation: &current,
		conditionsAnnotation: &to.Status.Conditions, behaviorAnnotation: &to.Spec.Behavior,
	} {
		if text, ok := from.Annotations[annotation]; ok {
			// Users may write anything into these annotations; unreadable ones are
			// dropped, as in upstream.
			_ = json.Unmarshal([]byte(text), into)
		}
	}
	to.Spec.Metrics, to.Status.CurrentMetrics = metricsFromV1(metrics), statusesFromV1(current)
	dropAnnotations(to.Annotations)
	if cpu := from.Status.CurrentCPUUtilizationPercentage; cpu != nil && len(current) == 0 {
		to.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: cpu},
			},
		}}
	}
	if cpu := from.Spec.TargetCPUUtilizationPercentage; cpu != nil {
		to.Spec.Metrics = append([]autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: cpu},
			},
		}}, to.Spec.Metrics...)
	}
	return nil
}

func orNil[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// behavior is upstream's form of the annotation, which names the fields of its internal type.
type behavior struct{ ScaleUp, ScaleDown *scalingRules }

type scalingRules struct {
	StabilizationWindowSeconds *int32
	SelectPolicy               *autoscalingv2.ScalingPolicySelect
	Policies                   []scalingPolicy
	Tolerance                  *resource.Quantity
}

type scalingPolicy struct {
	Type                 autoscalingv2.HPAScalingPolicyType
	Value, PeriodSeconds int32
}

func behaviorToV1(b *autoscalingv2.HorizontalPodAutoscalerBehavior) any {
	if b == nil {
		return nil
	}
	return behavior{rulesToV1(b.ScaleUp), rulesToV1(b.ScaleDown)}
}

func rulesToV1(r *autoscalingv2.HPAScalingRules) *scalingRules {
	if r == nil {
		return nil
	}
	out := &scalingRules{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, scalingPolicy(p))
	}
	return out
}

func annotate(out *autoscalingv1.HorizontalPodAutoscaler, values map[string]any) error {
	for key, value := range values {
		if value == nil {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode %s: %w", key, err)
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[key] = string(text)
	}
	return nil
}
