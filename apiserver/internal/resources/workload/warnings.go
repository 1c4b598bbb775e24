package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
	"kctl/proto/core"
)

// WithTemplate adds to a strategy the warnings about the pods of a kind's
// template, on create and on update. What is wrong with a stored template, by
// rules that it did not have to meet, does not prevent updates.
func WithTemplate[T core.Object](s registry.Strategy[T], at string, template func(T) *corev1.PodTemplateSpec) registry.Strategy[T] {
	created, updated, validated := s.Create.Warnings, s.Update.Warnings, s.Update.Validate
	s.Update.Validate = func(ctx context.Context, obj, old T) field.ErrorList {
		errs := validated(ctx, obj, old)
		if len(errs) == 0 {
			return nil
		}
		return check.NewErrors(errs, pod.ValidateTemplate(template(old), field.NewPath(at)))
	}
	s.Create.Warnings = func(ctx context.Context, obj T) []string {
		out := pod.TemplateWarnings(template(obj), nil, at)
		if created != nil {
			out = append(out, created(ctx, obj)...)
		}
		return out
	}
	s.Update.Warnings = func(ctx context.Context, obj, old T) []string {
		out := pod.TemplateWarnings(template(obj), template(old), at)
		if updated != nil {
			out = append(out, updated(ctx, obj, old)...)
		}
		return out
	}
	return s
}
