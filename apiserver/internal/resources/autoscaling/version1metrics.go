package autoscaling

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Version 1 has no fields for metrics, but types for them in its annotations: there,
// each kind of metric has targets with names of its own. A number that such a type
// can't omit is written as 0 and read as none.

func metricsFromV1(list []autoscalingv1.MetricSpec) []autoscalingv2.MetricSpec {
	return each(list, func(m autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
		out := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
		if o := m.Object; o != nil {
			out.Object = &autoscalingv2.ObjectMetricSource{
				DescribedObject: autoscalingv2.CrossVersionObjectReference(o.Target),
				Metric:          autoscalingv2.MetricIdentifier{Name: o.MetricName, Selector: o.Selector},
				Target:          valueTarget(&o.TargetValue, o.AverageValue),
			}
			if o.AverageValue != nil {
				out.Object.Target.Type, out.Object.Target.Value = autoscalingv2.AverageValueMetricType, pointerTo(o.TargetValue)
			}
		}
		if p := m.Pods; p != nil {
			out.Pods = &autoscalingv2.PodsMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: p.MetricName, Selector: p.Selector}, Target: valueTarget(nil, &p.TargetAverageValue),
			}
		}
		if r := m.Resource; r != nil {
			out.Resource = &autoscalingv2.ResourceMetricSource{
				Name: r.Name, Target: utilizationTarget(r.TargetAverageUtilization, r.TargetAverageValue),
			}
		}
		if r := m.ContainerResource; r != nil {
			out.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
				Name: r.Name, Container: r.Container, Target: utilizationTarget(r.TargetAverageUtilization, r.TargetAverageValue),
			}
		}
		if e := m.External; e != nil {
			out.External = &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: e.MetricName, Selector: e.MetricSelector},
				Target: valueTarget(e.TargetValue, e.TargetAverageValue),
			}
		}
		return out
	})
}

func metricsToV1(list []autoscalingv2.MetricSpec) []autoscalingv1.MetricSpec {
	return each(list, func(m autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
		out := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(m.Type)}
		if o := m.Object; o != nil {
			out.Object = &autoscalingv1.ObjectMetricSource{
				Target: autoscalingv1.CrossVersionObjectReference(o.DescribedObject), MetricName: o.Metric.Name, Selector: o.Metric.Selector,
				TargetValue: orZero(o.Target.Value), AverageValue: o.Target.AverageValue,
			}
		}
		if p := m.Pods; p != nil {
			out.Pods = &autoscalingv1.PodsMetricSource{
				MetricName: p.Metric.Name, Selector: p.Metric.Selector, TargetAverageValue: orZero(p.Target.AverageValue),
			}
		}
		if r := m.Resource; r != nil {
			out.Resource = &autoscalingv1.ResourceMetricSource{
				Name: r.Name, TargetAverageUtilization: r.Target.AverageUtilization, TargetAverageValue: r.Target.AverageValue,
			}
		}
		if r := m.ContainerResource; r != nil {
			out.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
				Name: r.Name, Container: r.Container, TargetAverageUtilization: r.Target.AverageUtilization, TargetAverageValue: r.Target.AverageValue,
			}
		}
		if e := m.External; e != nil {
			out.External = &autoscalingv1.ExternalMetricSource{
				MetricName: e.Metric.Name, MetricSelector: e.Metric.Selector, TargetValue: e.Target.Value, TargetAverageValue: e.Target.AverageValue,
			}
		}
		return out
	})
}

func statusesFromV1(list []autoscalingv1.MetricStatus) []autoscalingv2.MetricStatus {
	return each(list, func(m autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
		out := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(m.Type)}
		if o := m.Object; o != nil {
			out.Object = &autoscalingv2.ObjectMetricStatus{
				DescribedObject: autoscalingv2.CrossVersionObjectReference(o.Target),
				Metric:          autoscalingv2.MetricIdentifier{Name: o.MetricName, Selector: o.Selector},
				Current:         autoscalingv2.MetricValueStatus{Value: &o.CurrentValue, AverageValue: o.AverageValue},
			}
		}
		if p := m.Pods; p != nil {
			out.Pods = &autoscalingv2.PodsMetricStatus{
				Metric:  autoscalingv2.MetricIdentifier{Name: p.MetricName, Selector: p.Selector},
				Current: autoscalingv2.MetricValueStatus{AverageValue: &p.CurrentAverageValue},
			}
		}
		if r := m.Resource; r != nil {
			out.Resource = &autoscalingv2.ResourceMetricStatus{
				Name: r.Name, Current: autoscalingv2.MetricValueStatus{
					AverageValue: &r.CurrentAverageValue, AverageUtilization: r.CurrentAverageUtilization,
				},
			}
		}
		if r := m.ContainerResource; r != nil {
			out.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
				Name: r.Name, Container: r.Container, Current: autoscalingv2.MetricValueStatus{
					AverageValue: &r.CurrentAverageValue, AverageUtilization: r.CurrentAverageUtilization,
				},
			}
		}
		if e := m.External; e != nil {
			out.External = &autoscalingv2.ExternalMetricStatus{
				Metric:  autoscalingv2.MetricIdentifier{Name: e.MetricName, Selector: e.MetricSelector},
				Current: autoscalingv2.MetricValueStatus{Value: &e.CurrentValue, AverageValue: e.CurrentAverageValue},
			}
		}
		return out
	})
}

func statusesToV1(list []autoscalingv2.MetricStatus) []autoscalingv1.MetricStatus {
	return each(list, func(m autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
		out := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(m.Type)}
		if o := m.Object; o != nil {
			out.Object = &autoscalingv1.ObjectMetricStatus{
				Target: autoscalingv1.CrossVersionObjectReference(o.DescribedObject), MetricName: o.Metric.Name, Selector: o.Metric.Selector,
				CurrentValue: orZero(o.Current.Value), AverageValue: o.Current.AverageValue,
			}
		}
		if p := m.Pods; p != nil {
			out.Pods = &autoscalingv1.PodsMetricStatus{
				MetricName: p.Metric.Name, Selector: p.Metric.Selector, CurrentAverageValue: orZero(p.Current.AverageValue),
			}
		}
		if r := m.Resource; r != nil {
			out.Resource = &autoscalingv1.ResourceMetricStatus{
				Name: r.Name, CurrentAverageUtilization: r.Current.AverageUtilization, CurrentAverageValue: orZero(r.Current.AverageValue),
			}
		}
		if r := m.ContainerResource; r != nil {
			out.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
				Name: r.Name, Container: r.Container, CurrentAverageUtilization: r.Current.AverageUtilization,
				CurrentAverageValue: orZero(r.Current.AverageValue),
			}
		}
		if e := m.External; e != nil {
			out.External = &autoscalingv1.ExternalMetricStatus{
				MetricName: e.Metric.Name, MetricSelector: e.Metric.Selector, CurrentValue: orZero(e.Current.Value),
				CurrentAverageValue: e.Current.AverageValue,
			}
		}
		return out
	})
}

// utilizationTarget targets a utilization of the request or, otherwise, an average amount.
func utilizationTarget(share *int32, average *resource.Quantity) autoscalingv2.MetricTarget {
	kind := autoscalingv2.UtilizationMetricType
	if share == nil {
		kind = autoscalingv2.AverageValueMetricType
	}
	return autoscalingv2.MetricTarget{Type: kind, AverageUtilization: share, AverageValue: average}
}

// valueTarget targets an amount or, otherwise, an average one.
func valueTarget(value, average *resource.Quantity) autoscalingv2.MetricTarget {
	kind := autoscalingv2.ValueMetricType
	if value == nil {
		kind = autoscalingv2.AverageValueMetricType
	}
	return autoscalingv2.MetricTarget{Type: kind, Value: value, AverageValue: average}
}

func orZero(q *resource.Quantity) resource.Quantity {
	if q == nil {
		return resource.Quantity{}
	}
	return *q
}

func pointerTo(q resource.Quantity) *resource.Quantity {
	if q.IsZero() {
		return nil
	}
	return &q
}

func each[A, B any](list []A, convert func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = convert(a)
	}
	return out
}
