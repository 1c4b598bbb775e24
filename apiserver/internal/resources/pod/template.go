package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// ServedTemplates are the pod templates, which are only stored.
func ServedTemplates(o registry.Options) []registry.Served {
	return registry.Serve(registry.NewStore(templates(), o))
}

func templates() registry.Strategy[*corev1.PodTemplate] {
	return registry.Strategy[*corev1.PodTemplate]{
		Resource: core.PodTemplates, Singular: "podtemplate",
		New:           func() *corev1.PodTemplate { return new(corev1.PodTemplate) },
		Default:       func(t *corev1.PodTemplate) { DefaultTemplate(&t.Template) },
		HasGeneration: true,
		Create: registry.CreateStrategy[*corev1.PodTemplate]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, t *corev1.PodTemplate) field.ErrorList {
				return ValidateTemplate(&t.Template, field.NewPath("template"))
			},
			Warnings: func(_ context.Context, t *corev1.PodTemplate) []string {
				return TemplateWarnings(&t.Template, nil, "template")
			},
		},
		Update: registry.UpdateStrategy[*corev1.PodTemplate]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, t, _ *corev1.PodTemplate) field.ErrorList {
				return ValidateTemplate(&t.Template, field.NewPath("template"))
			},
			Warnings: func(_ context.Context, t, old *corev1.PodTemplate) []string {
				return TemplateWarnings(&t.Template, &old.Template, "template")
			},
		},
		Delete: registry.DeleteStrategy[*corev1.PodTemplate]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*corev1.PodTemplate]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(),
				cell.Text("Containers", "Names of each container in the template."),
				cell.Text("Images", "Images referenced by each container in the template."),
				cell.Text("Pod Labels", "The labels for the pod template."),
			},
			Row: templateRow,
		},
	}
}

// DefaultTemplate sets the defaults of a pod template.
func DefaultTemplate(t *corev1.PodTemplateSpec) { defaultSpec(&t.Spec) }

// ValidateTemplate validates a pod template in any kind.
func ValidateTemplate(t *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(t.Labels, at.Child("labels").Upstream())
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, at.Child("annotations").Upstream())...)
	errs = append(errs, validateAnnotations(t.Annotations, &t.Spec, at.Child("annotations"), at.Child("spec"))...)
	// Host ports may be left to the pod's defaults.
	spec := t.Spec.DeepCopy()
	for c := range core.Containers(spec) {
		portsOnHost(c, spec.HostNetwork)
	}
	errs = append(errs, validateSpec(spec, at.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(at.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

func templateRow(t *corev1.PodTemplate) []any {
	names, images := cell.Containers(t.Template.Spec.Containers)
	return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
}
