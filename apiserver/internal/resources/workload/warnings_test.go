package workload

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/pod"
)

// TestStoredTemplates: errors that a stored template has do not prevent updates; others do.
func TestStoredTemplates(t *testing.T) {
	at := field.NewPath("spec", "template")
	s := WithTemplate(registry.Strategy[*corev1.ReplicationController]{Update: registry.UpdateStrategy[*corev1.ReplicationController]{
		Validate: func(_ context.Context, c, _ *corev1.ReplicationController) field.ErrorList {
			return pod.ValidateTemplate(c.Spec.Template, at)
		},
	}}, at.String(), func(c *corev1.ReplicationController) *corev1.PodTemplateSpec { return c.Spec.Template })
	stored := &corev1.ReplicationController{}
	stored.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
	pod.DefaultTemplate(stored.Spec.Template)
	if errs := s.Update.Validate(t.Context(), stored, stored); len(errs) > 0 {
		t.Errorf("as it is stored: %v", errs)
	}
	changed := stored.DeepCopy()
	changed.Spec.Template.Spec.Containers[0].Name = ""
	if errs := s.Update.Validate(t.Context(), changed, stored); len(errs) != 1 || errs[0].Field != "spec.template.spec.containers[0].name" {
		t.Errorf("with another error: %v", errs)
	}
}
