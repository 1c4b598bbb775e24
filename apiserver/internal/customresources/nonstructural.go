package customresources

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/customresources/structural"
	"kctl/apiserver/internal/resources/customresourcedefinition"
)

// violations are why the schemas of a definition are not structural; "" if they are. Only a definition
// that was stored before apiextensions.k8s.io/v1 may be so (Kubernetes docs, "Specifying a structural schema").
func violations(d *definition) string {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if d.Spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(spec.Child("preserveUnknownFields"), true, "must be false"))
	}
	for i := range d.Spec.Versions {
		if v := &d.Spec.Versions[i]; v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			at := spec.Child("versions").Index(i).Child("schema", "openAPIV3Schema")
			errs = append(errs, structural.Violations(at, v.Schema.OpenAPIV3Schema)...)
		}
	}
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

// updateNonStructural records whether the schemas are not structural.
func updateNonStructural(d *definition, violations string, now time.Time) {
	if violations == "" {
		d.Status.Conditions = slices.DeleteFunc(d.Status.Conditions,
			func(c condition) bool { return c.Type == apiextensionsv1.NonStructuralSchema })
		return
	}
	customresourcedefinition.SetCondition(d, condition{
		Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionTrue, Reason: "Violations", Message: violations,
	}, now)
}

// nonStructuralIsCurrent reports whether that is recorded. Servers of different versions may word it
// differently: what was right once is left as another puts it.
func nonStructuralIsCurrent(d *definition, violations string, wasRight bool) bool {
	i := slices.IndexFunc(d.Status.Conditions, func(c condition) bool { return c.Type == apiextensionsv1.NonStructuralSchema })
	if i < 0 || violations == "" {
		return i < 0 && violations == ""
	}
	return wasRight || d.Status.Conditions[i].Message == violations
}

// published is what clients are told of a schema: nothing if that is not for them, and if the
// definition preserves unknown fields, that it does, so that nobody takes them for wrong.
func published(props *apiextensionsv1.JSONSchemaProps, preserves bool) *apiextensionsv1.JSONSchemaProps {
	switch {
	case props == nil || !structural.Publishable(props):
		return nil
	case preserves:
		open := *props
		open.XPreserveUnknownFields = new(true)
		return &open
	}
	return props
}
