package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/pod"
	"kctl/proto/core"
)

// WithTemplate adds to a strategy the warnings about the pods of a kind's
// template, on create and on update.
func WithTemplate[T core.Object](s registry.Strategy[T], at string, template func(T) *corev1.PodTemplateSpec) registry.Strategy[T] {
	created, updated := s.Create.Warnings, s.Update.Warnings
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
