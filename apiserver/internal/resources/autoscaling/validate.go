package autoscaling

import (
	"errors"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const (
	maxPeriod = 1800
	maxWindow = 3600
)

func validate(s *autoscalingv2.HorizontalPodAutoscalerSpec) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if ptr.Deref(s.MinReplicas, 1) == 0 && !canScaleFromZero(s.Metrics) {
		errs = append(errs, field.Forbidden(at.Child("metrics"),
			"must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), s.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, validateReference(s.ScaleTargetRef, at.Child("scaleTargetRef"))...)
	errs = append(errs, validateTargetVersion(s.ScaleTargetRef, at.Child("scaleTargetRef", "apiVersion"))...)
	for i := range s.Metrics {
		errs = append(errs, validateMetric(&s.Metrics[i], at.Child("metrics").Index(i))...)
	}
	if b := s.Behavior; b != nil {
		errs = append(errs, validateRules(b.ScaleUp, at.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateRules(b.ScaleDown, at.Child("behavior", "scaleDown"))...)
	}
	if s.MinReplicas != nil { // these two last, as with upstream
		errs = append(errs, check.Nonnegative(int64(*s.MinReplicas), at.Child("minReplicas"))...)
	}
	switch most := at.Child("maxReplicas"); {
	case s.MaxReplicas == 0:
		errs = append(errs, field.Required(most, ""))
	case s.MaxReplicas < 0:
		errs = append(errs, field.Invalid(most, s.MaxReplicas, "must be greater than or equal to 1"))
	}
	return errs
}

// validateTargetVersion checks that the scale target has a group, except for the one kind
// without.
func validateTargetVersion(ref autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err == nil && version.Group == "" && ref.Kind != "ReplicationController" {
		err = errors.New("apiVersion must specify API group")
	}
	if err == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(at, ref.APIVersion, err.Error())}
}

// canScaleFromZero reports whether a metric can show that pods are needed while there are
// none.
func canScaleFromZero(metrics []autoscalingv2.MetricSpec) bool {
	return slices.ContainsFunc(metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	})
}

func validateReference(ref autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct{ name, value string }{{"kind", ref.Kind}, {"name", ref.Name}} {
		if f.value == "" {
			errs = append(errs, field.Required(at.Child(f.name), ""))
			continue
		}
		errs = append(errs, check.Messages(at.Child(f.name), f.value, content.IsPathSegmentName(f.value))...)
	}
	if _, err := schema.ParseGroupVersion(ref.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, err.Error()))
	}
	return errs
}

// validateMetric checks that a metric has the source of its type.
func validateMetric(m *autoscalingv2.MetricSpec, at *field.Path) field.ErrorList {
	sources := []struct {
		kind autoscalingv2.MetricSourceType
		name string
		set  bool
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil}, {autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil},
	}
	var errs field.ErrorList
	var kinds []autoscalingv2.MetricSourceType
	present := 0
	for _, s := range sources {
		kinds = append(kinds, s.kind)
		if s.set {
			present++
		}
	}
	if m.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric source type"))
	}
	errs = append(errs, check.Supported(m.Type, at.Child("type"), kinds...)...)
	for _, s := range sources {
		switch {
		case s.kind == m.Type && !s.set:
			errs = append(errs, field.Required(at.Child(s.name), "must populate information for the given metric source"))
		case s.kind != m.Type && s.set && present > 1:
			errs = append(errs, field.Forbidden(at.Child(s.name), "must populate the given metric source only"))
		}
	}
	return append(errs, validateSource(m, at)...)
}

// validateSource checks the first source that is set.
func validateSource(m *autoscalingv2.MetricSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case m.Object != nil:
		errs = append(errs, validateReference(m.Object.DescribedObject, at.Child("object", "describedObject"))...)
		errs = append(errs, validateIdentifier(m.Object.Metric, at.Child("object", "metric"))...)
		errs = append(errs, validateTarget(m.Object.Target, at.Child("object", "target"))...)
		if m.Object.Target.Value == nil && m.Object.Target.AverageValue == nil {
			errs = append(errs, field.Required(at.Child("object", "target", "averageValue"), "must set either a target value or averageValue"))
		}
	case m.External != nil:
		errs = append(errs, validateIdentifier(m.External.Metric, at.Child("external", "metric"))...)
		errs = append(errs, validateExternalTarget(m.External.Target, at.Child("external", "target"))...)
	case m.Pods != nil:
		errs = append(errs, validateIdentifier(m.Pods.Metric, at.Child("pods", "metric"))...)
		errs = append(errs, validateTarget(m.Pods.Target, at.Child("pods", "target"))...)
		if m.Pods.Target.AverageValue == nil {
			errs = append(errs, field.Required(at.Child("pods", "target", "averageValue"), "must specify a positive target averageValue"))
		}
	case m.Resource != nil:
		if m.Resource.Name == "" {
			errs = append(errs, field.Required(at.Child("resource", "name"), "must specify a resource name"))
		}
		errs = append(errs, validateResourceTarget(m.Resource.Target, at.Child("resource", "target"))...)
	case m.ContainerResource != nil:
		if m.ContainerResource.Name == "" {
			errs = append(errs, field.Required(at.Child("containerResource", "name"), "must specify a resource name"))
		} else {
			errs = append(errs, check.LimitedResource(m.ContainerResource.Name, true, at.Child("containerResource", "name"))...)
		}
		if m.ContainerResource.Container == "" {
			errs = append(errs, field.Required(at.Child("containerResource", "container"), "must specify a container"))
		} else {
			errs = append(errs, check.Label(m.ContainerResource.Container, at.Child("containerResource", "container"))...)
		}
		errs = append(errs, validateResourceTarget(m.ContainerResource.Target, at.Child("containerResource", "target"))...)
	}
	return errs
}

func validateIdentifier(m autoscalingv2.MetricIdentifier, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a metric name"))
	} else {
		errs = append(errs, check.Messages(at.Child("name"), m.Name, content.IsPathSegmentName(m.Name))...)
	}
	return errs
}

func validateTarget(t autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric target type"))
	}
	if t.Type != autoscalingv2.UtilizationMetricType && t.Type != autoscalingv2.ValueMetricType &&
		t.Type != autoscalingv2.AverageValueMetricType {
		errs = append(errs, field.Invalid(at.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(at.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

// validateResourceTarget checks a resource's target: a utilization or an average amount.
func validateResourceTarget(t autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	errs := validateTarget(t, at)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	case t.AverageUtilization != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateExternalTarget(t autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	errs := validateTarget(t, at)
	switch {
	case t.Value == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("averageValue"), "must set either a target value for metric or a per-pod target"))
	case t.Value != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("value"), "may not set both a target value for metric and a per-pod target"))
	}
	return errs
}

func validateRules(r *autoscalingv2.HPAScalingRules, at *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if window := r.StabilizationWindowSeconds; window != nil {
		if *window < 0 {
			errs = append(errs, field.Invalid(at.Child("stabilizationWindowSeconds"), *window, "must be greater than or equal to zero"))
		}
		if *window > maxWindow {
			errs = append(errs, field.Invalid(at.Child("stabilizationWindowSeconds"), *window,
				fmt.Sprintf("must be less than or equal to %v", maxWindow)))
		}
	}
	if r.SelectPolicy != nil {
		errs = append(errs, check.Supported(*r.SelectPolicy, at.Child("selectPolicy"),
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect)...)
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(at.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		path := at.Child("policies").Index(i)
		errs = append(errs, check.Supported(p.Type, path.Child("type"), autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy)...)
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(path.Child("value"), p.Value, "must be greater than zero"))
		}
		if p.PeriodSeconds <= 0 {
			errs = append(errs, field.Invalid(path.Child("periodSeconds"), p.PeriodSeconds, "must be greater than zero"))
		}
		if p.PeriodSeconds > maxPeriod {
			errs = append(errs, field.Invalid(path.Child("periodSeconds"), p.PeriodSeconds,
				fmt.Sprintf("must be less than or equal to %v", maxPeriod)))
		}
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), r.Tolerance.String(), check.NotNegative))
	}
	return errs
}
