package admissionregistration

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// categories are those of every resource here.
var categories = []string{"api-extensions"}

func resource(name, kind string) core.Resource {
	return core.Resource{Group: admissionregistrationv1.GroupName, Version: "v1", Name: name, Kind: kind}
}

// strategy is what all six have in common. validate gets the object as it was,
// or nil.
func strategy[T core.Object](r core.Resource, singular string, clock clock.PassiveClock, newObject func() T, defaults func(T), validate func(obj, old T) field.ErrorList, columns []metav1.TableColumnDefinition, cells func(T) []any) registry.Strategy[T] {
	var none T
	return registry.Strategy[T]{
		Resource: r, Singular: singular, Categories: categories, HasGeneration: true,
		New: newObject, Default: defaults, ValidateName: check.NameIsSubdomain,
		Validate: func(_ context.Context, obj T) field.ErrorList { return validate(obj, none) },
		Update: registry.Change[T]{
			Validate: func(_ context.Context, obj, old T) field.ErrorList { return validate(obj, old) },
		},
		Columns: append(append([]metav1.TableColumnDefinition{cell.Name()}, columns...), cell.AgeColumn()),
		Row: func(obj T) []any {
			return append(append([]any{obj.GetName()}, cells(obj)...), cell.Age(clock.Now(), obj.GetCreationTimestamp()))
		},
	}
}

func number(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}

const (
	webhooksColumn = "Webhooks indicates the number of webhooks registered in this configuration"
	kindColumn     = "ParamKind specifies the kind of resources used to parameterize this policy"
)

// ValidatingWebhooks is the strategy of validatingwebhookconfigurations.
func ValidatingWebhooks(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.ValidatingWebhookConfiguration] {
	type object = *admissionregistrationv1.ValidatingWebhookConfiguration
	return strategy(resource("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"), "validatingwebhookconfiguration", clock,
		func() object { return new(admissionregistrationv1.ValidatingWebhookConfiguration) },
		func(o object) {
			for i := range o.Webhooks {
				defaultValidating(&o.Webhooks[i])
			}
		},
		func(o, old object) field.ErrorList {
			known := expressions{}
			if old != nil {
				known.webhooks(ofValidating(old.Webhooks))
			}
			return validateWebhooks(ofValidating(o.Webhooks), known)
		},
		[]metav1.TableColumnDefinition{number("Webhooks", webhooksColumn)},
		func(o object) []any { return []any{int64(len(o.Webhooks))} })
}

// MutatingWebhooks is the strategy of mutatingwebhookconfigurations.
func MutatingWebhooks(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.MutatingWebhookConfiguration] {
	type object = *admissionregistrationv1.MutatingWebhookConfiguration
	return strategy(resource("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"), "mutatingwebhookconfiguration", clock,
		func() object { return new(admissionregistrationv1.MutatingWebhookConfiguration) },
		func(o object) {
			for i := range o.Webhooks {
				defaultMutating(&o.Webhooks[i])
			}
		},
		func(o, old object) field.ErrorList {
			known := expressions{}
			if old != nil {
				known.webhooks(ofMutating(old.Webhooks))
			}
			return validateWebhooks(ofMutating(o.Webhooks), known)
		},
		[]metav1.TableColumnDefinition{number("Webhooks", webhooksColumn)},
		func(o object) []any { return []any{int64(len(o.Webhooks))} })
}

// ValidatingPolicies is the strategy of validatingadmissionpolicies.
func ValidatingPolicies(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.ValidatingAdmissionPolicy] {
	type object = *admissionregistrationv1.ValidatingAdmissionPolicy
	s := strategy(resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy"), "validatingadmissionpolicy", clock,
		func() object { return new(admissionregistrationv1.ValidatingAdmissionPolicy) },
		func(o object) {
			defaultFailurePolicy(&o.Spec.FailurePolicy)
			defaultMatch(o.Spec.MatchConstraints)
		},
		func(o, old object) field.ErrorList {
			known := expressions{}
			if old != nil {
				known.validating(&old.Spec)
			}
			return validateValidatingPolicy(o, known)
		},
		[]metav1.TableColumnDefinition{
			number("Validations", "Validations indicates the number of validation rules defined in this configuration"),
			cell.Text("ParamKind", kindColumn),
		},
		func(o object) []any { return []any{int64(len(o.Spec.Validations)), kindCell(o.Spec.ParamKind)} })
	s.PrepareForCreate = func(_ context.Context, o object) {
		o.Status = admissionregistrationv1.ValidatingAdmissionPolicyStatus{}
	}
	s.Update.Prepare = func(_ context.Context, o, old object) { o.Status = old.Status }
	s.Status = &registry.Change[object]{
		Prepare:       func(_ context.Context, o, old object) { o.Spec = old.Spec },
		KeepsMetadata: true,
		Validate: func(_ context.Context, o, _ object) field.ErrorList {
			return metav1validation.ValidateConditions(o.Status.Conditions, field.NewPath("status", "conditions"))
		},
	}
	return s
}

// MutatingPolicies is the strategy of mutatingadmissionpolicies.
func MutatingPolicies(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.MutatingAdmissionPolicy] {
	type object = *admissionregistrationv1.MutatingAdmissionPolicy
	return strategy(resource("mutatingadmissionpolicies", "MutatingAdmissionPolicy"), "mutatingadmissionpolicy", clock,
		func() object { return new(admissionregistrationv1.MutatingAdmissionPolicy) },
		func(o object) {
			defaultFailurePolicy(&o.Spec.FailurePolicy)
			defaultMatch(o.Spec.MatchConstraints)
		},
		func(o, old object) field.ErrorList {
			known := expressions{}
			if old != nil {
				known.mutating(&old.Spec)
			}
			return validateMutatingPolicy(o, known)
		},
		[]metav1.TableColumnDefinition{
			number("Mutations", "Mutation indicates the number of mutations rules defined in this configuration"),
			cell.Text("ParamKind", kindColumn),
		},
		func(o object) []any { return []any{int64(len(o.Spec.Mutations)), kindCell(o.Spec.ParamKind)} })
}

var bindingColumns = []metav1.TableColumnDefinition{
	cell.Text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
	cell.Text("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
}

// ValidatingBindings is the strategy of validatingadmissionpolicybindings.
func ValidatingBindings(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.ValidatingAdmissionPolicyBinding] {
	type object = *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	return strategy(resource("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"), "validatingadmissionpolicybinding", clock,
		func() object { return new(admissionregistrationv1.ValidatingAdmissionPolicyBinding) },
		func(o object) { defaultMatch(o.Spec.MatchResources) },
		func(o, _ object) field.ErrorList {
			errs := validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources)
			return append(errs, validateActions(o.Spec.ValidationActions, field.NewPath("spec", "validationActions"))...)
		},
		bindingColumns,
		func(o object) []any { return []any{o.Spec.PolicyName, refCell(o.Spec.ParamRef)} })
}

// MutatingBindings is the strategy of mutatingadmissionpolicybindings.
func MutatingBindings(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.MutatingAdmissionPolicyBinding] {
	type object = *admissionregistrationv1.MutatingAdmissionPolicyBinding
	return strategy(resource("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"), "mutatingadmissionpolicybinding", clock,
		func() object { return new(admissionregistrationv1.MutatingAdmissionPolicyBinding) },
		func(o object) { defaultMatch(o.Spec.MatchResources) },
		func(o, _ object) field.ErrorList {
			return validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources)
		},
		bindingColumns,
		func(o object) []any { return []any{o.Spec.PolicyName, refCell(o.Spec.ParamRef)} })
}

const unset = "<unset>"

func kindCell(k *admissionregistrationv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

func refCell(r *admissionregistrationv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Name != "" && r.Namespace != "":
		return fmt.Sprintf("%s/%s", r.Namespace, r.Name)
	case r.Name != "":
		return "*/" + r.Name
	case r.Selector != nil:
		return fmt.Sprintf("%s/%s", orAny(r.Namespace), metav1.FormatLabelSelector(r.Selector))
	}
	return unset
}

func orAny(namespace string) string {
	if namespace == "" {
		return "*"
	}
	return namespace
}
