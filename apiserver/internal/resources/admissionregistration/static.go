package admissionregistration

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Complete gives an object that was read from a file its defaults, and returns what is
// wrong with it: the same as for one that a client sends, but that its name may end with StaticSuffix.
// known is false for an object of another group.
func Complete(obj core.Object) (errs field.ErrorList, known bool) {
	c := clock.RealClock{}
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		return complete(ValidatingWebhooks(c), o), true
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		return complete(MutatingWebhooks(c), o), true
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return complete(ValidatingPolicies(c), o), true
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return complete(MutatingPolicies(c), o), true
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return complete(ValidatingBindings(c), o), true
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return complete(MutatingBindings(c), o), true
	}
	return nil, false
}

func complete[T core.Object](s registry.Strategy[T], obj T) field.ErrorList {
	var none T
	s.Default(obj)
	errs := validation.ValidateObjectMetaAccessor(obj, false, s.Create.ValidateName, field.NewPath("metadata").Upstream())
	return append(errs, s.Update.Validate(context.Background(), obj, none)...)
}
