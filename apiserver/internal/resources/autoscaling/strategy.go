package autoscaling

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/workload"
	"kctl/proto/core"
)

// defaultUtilization is the target of autoscalers without metrics.
const defaultUtilization = 80

// Served are both versions, the preferred one first.
func Served(o registry.Options) []registry.Served {
	store := registry.NewStore(strategy(o.Clock), o)
	info := store.Info()
	info.Version = "v1"
	info.Columns = nil
	return registry.Serve(store, registry.NewObjectView(registry.View{
		Stored: store, Shown: info,
		NewKind: func() core.Object { return new(autoscalingv1.HorizontalPodAutoscaler) },
		Defaults: func(obj core.Object) {
			workload.DefaultTo(&obj.(*autoscalingv1.HorizontalPodAutoscaler).Spec.MinReplicas, 1)
		},
		Show:      convertToV1,
		WriteBack: FromVersion1,
	}))
}

func strategy(clock clock.PassiveClock) registry.Strategy[*autoscalingv2.HorizontalPodAutoscaler] {
	return registry.WithStatus(registry.Strategy[*autoscalingv2.HorizontalPodAutoscaler]{
		Resource: core.Resource{
			Group: autoscalingv2.GroupName, Version: "v2", Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true,
		},
		Singular: "horizontalpodautoscaler", ShortNames: []string{"hpa"}, Categories: []string{"all"},
		Default: setDefaults,
		Normalize: func(a *autoscalingv2.HorizontalPodAutoscaler) {
			a.Status.CurrentMetrics = check.NilIfEmpty(a.Status.CurrentMetrics)
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*autoscalingv2.HorizontalPodAutoscaler]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, a *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
				return validate(&a.Spec)
			},
		},
		Update: registry.UpdateStrategy[*autoscalingv2.HorizontalPodAutoscaler]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
				return validate(&a.Spec)
			},
		},
		Status: &registry.UpdateStrategy[*autoscalingv2.HorizontalPodAutoscaler]{
			Validate: func(_ context.Context, a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
				counts := []workload.Count{{Field: "currentReplicas", Value: a.Status.CurrentReplicas},
					{Field: "desiredReplicas", Value: a.Status.DesiredReplicas}}
				errs := workload.NonnegativeCounts(field.NewPath("status"), counts)
				for i, c := range a.Status.Conditions {
					errs = append(errs, check.Nonnegative(ptr.Deref(c.ObservedGeneration, 0),
						field.NewPath("status", "conditions").Index(i).Child("observedGeneration"))...)
				}
				return errs
			},
		},
		Read: registry.ReadStrategy[*autoscalingv2.HorizontalPodAutoscaler]{
			Columns: cell.Describe(cell.Columns(autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc(),
				"Name", "Reference=scaleTargetRef", "Targets=metrics", "MinPods=minReplicas", "MaxPods=maxReplicas", "Replicas", "Age",
			), map[string]string{
				"Replicas": autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"],
			}),
			Row: func(a *autoscalingv2.HorizontalPodAutoscaler) []any { return row(a, clock) },
		},
	})
}

func setDefaults(a *autoscalingv2.HorizontalPodAutoscaler) {
	s := &a.Spec
	workload.DefaultTo(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(defaultUtilization))},
		}}}
	}
	if s.Behavior == nil {
		return
	}
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	four := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}
	s.Behavior.ScaleUp = defaultScalingRules(s.Behavior.ScaleUp, new(int32(0)), four, percent)
	s.Behavior.ScaleDown = defaultScalingRules(s.Behavior.ScaleDown, nil, percent)
}

// defaultScalingRules sets the defaults of one direction of a behaviour.
func defaultScalingRules(r *autoscalingv2.HPAScalingRules, window *int32,
	policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if r == nil {
		r = &autoscalingv2.HPAScalingRules{}
	}
	if r.StabilizationWindowSeconds == nil {
		r.StabilizationWindowSeconds = window
	}
	workload.DefaultTo(&r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if r.Policies == nil {
		r.Policies = policies
	}
	return r
}
