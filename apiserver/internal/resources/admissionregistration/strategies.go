package admissionregistration

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
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

// particulars are what is particular to one of the six resources.
type particulars[T core.Object] struct {
	resource core.Resource
	defaults func(T)
	// validate gets the old object, or nil.
	validate func(obj, old T) field.ErrorList
	warnings func(T) []string // may be nil
	// columns and cells are those between the name and the age.
	columns []metav1.TableColumnDefinition
	cells   func(T) []any
}

// strategy adds what all six have in common.
func strategy[T core.Object](clock clock.PassiveClock, p particulars[T]) registry.Strategy[T] {
	var none T
	if p.warnings == nil {
		p.warnings = func(T) []string { return nil }
	}
	return registry.Strategy[T]{
		Resource: p.resource, Singular: strings.ToLower(p.resource.Kind), Categories: categories,
		Default:       p.defaults,
		HasGeneration: true,
		Create: registry.CreateStrategy[T]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, obj T) field.ErrorList {
				return append(p.validate(obj, none), validateNotReserved(obj.GetName())...)
			},
			Warnings: func(_ context.Context, obj T) []string { return p.warnings(obj) },
		},
		Update: registry.UpdateStrategy[T]{
			Validate: func(_ context.Context, obj, old T) field.ErrorList { return p.validate(obj, old) },
			Warnings: func(_ context.Context, obj, _ T) []string {
				return append(warnOfReserved(obj.GetName()), p.warnings(obj)...)
			},
		},
		Read: registry.ReadStrategy[T]{
			Columns: append(append([]metav1.TableColumnDefinition{cell.Name()}, p.columns...), cell.AgeColumn()),
			Row: func(obj T) []any {
				return append(append([]any{obj.GetName()}, p.cells(obj)...), cell.Age(clock.Now(), obj.GetCreationTimestamp()))
			},
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
	return strategy(clock, particulars[object]{
		resource: resource("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
		defaults: func(o object) {
			for i := range o.Webhooks {
				defaultValidating(&o.Webhooks[i])
			}
		},
		validate: func(o, old object) field.ErrorList {
			known := storedExpressions{}
			if old != nil {
				known.webhooks(fromValidating(old.Webhooks))
			}
			return validateWebhooks(fromValidating(o.Webhooks), known)
		},
		warnings: func(o object) []string { return warnOfRules(fromValidating(o.Webhooks)) },
		columns:  []metav1.TableColumnDefinition{number("Webhooks", webhooksColumn)},
		cells:    func(o object) []any { return []any{int64(len(o.Webhooks))} },
	})
}

// MutatingWebhooks is the strategy of mutatingwebhookconfigurations.
func MutatingWebhooks(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.MutatingWebhookConfiguration] {
	type object = *admissionregistrationv1.MutatingWebhookConfiguration
	return strategy(clock, particulars[object]{
		resource: resource("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
		defaults: func(o object) {
			for i := range o.Webhooks {
				defaultMutating(&o.Webhooks[i])
			}
		},
		validate: func(o, old object) field.ErrorList {
			known := storedExpressions{}
			if old != nil {
				known.webhooks(fromMutating(old.Webhooks))
			}
			return validateWebhooks(fromMutating(o.Webhooks), known)
		},
		warnings: func(o object) []string { return warnOfRules(fromMutating(o.Webhooks)) },
		columns:  []metav1.TableColumnDefinition{number("Webhooks", webhooksColumn)},
		cells:    func(o object) []any { return []any{int64(len(o.Webhooks))} },
	})
}

// ValidatingPolicyResource is the resource of the policies whose types a loop checks.
var ValidatingPolicyResource = resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy")

// ValidatingPolicies is the strategy of validatingadmissionpolicies.
func ValidatingPolicies(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.ValidatingAdmissionPolicy] {
	type object = *admissionregistrationv1.ValidatingAdmissionPolicy
	s := strategy(clock, particulars[object]{
		resource: ValidatingPolicyResource,
		defaults: func(o object) {
			defaultFailurePolicy(&o.Spec.FailurePolicy)
			defaultMatch(o.Spec.MatchConstraints)
		},
		validate: func(o, old object) field.ErrorList {
			known := storedExpressions{}
			if old != nil {
				known.validating(&old.Spec)
			}
			return validateValidatingPolicy(o, known)
		},
		columns: []metav1.TableColumnDefinition{
			number("Validations", "Validations indicates the number of validation rules defined in this configuration"),
			cell.Text("ParamKind", kindColumn),
		},
		cells: func(o object) []any { return []any{int64(len(o.Spec.Validations)), kindCell(o.Spec.ParamKind)} },
	})
	s.Create.Prepare = func(_ context.Context, o object) {
		o.Status = admissionregistrationv1.ValidatingAdmissionPolicyStatus{}
	}
	s.Update.Prepare = func(_ context.Context, o, old object) { o.Status = old.Status }
	s.Status = &registry.UpdateStrategy[object]{
		KeepsMetadata: true,
		Prepare:       func(_ context.Context, o, old object) { o.Spec = old.Spec },
		Validate: func(_ context.Context, o, _ object) field.ErrorList {
			return validatePolicyStatus(&o.Status, field.NewPath("status"))
		},
	}
	return s
}

// MutatingPolicies is the strategy of mutatingadmissionpolicies.
func MutatingPolicies(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.MutatingAdmissionPolicy] {
	type object = *admissionregistrationv1.MutatingAdmissionPolicy
	return strategy(clock, particulars[object]{
		resource: resource("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
		defaults: func(o object) {
			defaultFailurePolicy(&o.Spec.FailurePolicy)
			defaultMatch(o.Spec.MatchConstraints)
		},
		validate: func(o, old object) field.ErrorList {
			known := storedExpressions{}
			if old != nil {
				known.mutating(&old.Spec)
			}
			return validateMutatingPolicy(o, known)
		},
		columns: []metav1.TableColumnDefinition{
			number("Mutations", "Mutation indicates the number of mutations rules defined in this configuration"),
			cell.Text("ParamKind", kindColumn),
		},
		cells: func(o object) []any { return []any{int64(len(o.Spec.Mutations)), kindCell(o.Spec.ParamKind)} },
	})
}

var bindingColumns = []metav1.TableColumnDefinition{
	cell.Text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
	cell.Text("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
}

// ValidatingBindings is the strategy of validatingadmissionpolicybindings.
func ValidatingBindings(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.ValidatingAdmissionPolicyBinding] {
	type object = *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	return strategy(clock, particulars[object]{
		resource: resource("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
		defaults: func(o object) { defaultMatch(o.Spec.MatchResources) },
		validate: func(o, _ object) field.ErrorList {
			errs := validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources)
			return append(errs, validateActions(o.Spec.ValidationActions, field.NewPath("spec", "validationActions"))...)
		},
		columns: bindingColumns,
		cells:   func(o object) []any { return []any{o.Spec.PolicyName, refCell(o.Spec.ParamRef)} },
	})
}

// MutatingBindings is the strategy of mutatingadmissionpolicybindings.
func MutatingBindings(clock clock.PassiveClock) registry.Strategy[*admissionregistrationv1.MutatingAdmissionPolicyBinding] {
	type object = *admissionregistrationv1.MutatingAdmissionPolicyBinding
	return strategy(clock, particulars[object]{
		resource: resource("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
		defaults: func(o object) { defaultMatch(o.Spec.MatchResources) },
		validate: func(o, _ object) field.ErrorList {
			errs := validateBinding(o.Spec.PolicyName, o.Spec.ParamRef, o.Spec.MatchResources)
			if m := o.Spec.MatchResources; m != nil {
				errs = append(errs, validateMutable(m.ResourceRules, field.NewPath("spec", "matchResources", "resourceRules", "operations"))...)
			}
			return errs
		},
		columns: bindingColumns,
		cells:   func(o object) []any { return []any{o.Spec.PolicyName, refCell(o.Spec.ParamRef)} },
	})
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
