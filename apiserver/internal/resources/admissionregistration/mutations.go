package admissionregistration

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

var (
	mutableOperations = []admissionregistrationv1.OperationType{
		admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Update,
	}
	patchTypes = []admissionregistrationv1.PatchType{admissionregistrationv1.PatchTypeApplyConfiguration,
		admissionregistrationv1.PatchTypeJSONPatch}
)

func validateMutatingPolicy(p *admissionregistrationv1.MutatingAdmissionPolicy, known storedExpressions) field.ErrorList {
	spec, at := &p.Spec, field.NewPath("spec")
	errs := supportedIfSet(spec.FailurePolicy, at.Child("failurePolicy"), failurePolicies)
	errs = append(errs, validateParamKind(spec.ParamKind, at.Child("paramKind"))...)
	errs = append(errs, validateConstraints(spec.MatchConstraints, at.Child("matchConstraints"))...)
	if spec.MatchConstraints != nil {
		errs = append(errs, validateMutable(spec.MatchConstraints.ResourceRules, at.Child("matchConstraints", "resourceRules", "operations"))...)
	}
	conditions := &compilers{stored: known, options: condition.Options{Params: spec.ParamKind != nil}}
	errs = append(errs, validateMatchConditions(spec.MatchConditions, conditions, at.Child("matchConditions"))...)
	others := &compilers{stored: known, options: condition.Options{Params: spec.ParamKind != nil, Variables: true, Mutations: true}}
	errs = append(errs, validateVariables(spec.Variables, others, at.Child("variables"))...)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(at.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, validateMutation(&spec.Mutations[i], others, at.Child("mutations").Index(i))...)
	}
	if spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(at.Child("reinvocationPolicy"), ""))
	}
	return append(errs, check.SupportedInOrder(spec.ReinvocationPolicy, at.Child("reinvocationPolicy"), reinvocations...)...)
}

// validateMutable refuses operations without an object to change.
func validateMutable(rules []admissionregistrationv1.NamedRuleWithOperations, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, rule := range rules {
		for i := range rule.Operations {
			errs = append(errs, check.SupportedInOrder(rule.Operations[i], at, mutableOperations...)...)
		}
	}
	return errs
}

func validateMutation(m *admissionregistrationv1.Mutation, c *compilers, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch m.PatchType {
	case "":
		return append(errs, field.Required(at.Child("patchType"), ""))
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			errs = append(errs, patchFieldRequired("jsonPatch", m.PatchType, at))
		} else {
			errs = append(errs, validatePatch(m.JSONPatch.Expression, m.PatchType, c, at.Child("jsonPatch", "expression"))...)
		}
		if m.ApplyConfiguration != nil {
			errs = append(errs, patchFieldForbidden("applyConfiguration", m.PatchType, at))
		}
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			errs = append(errs, patchFieldRequired("applyConfiguration", m.PatchType, at))
		} else {
			errs = append(errs, validatePatch(m.ApplyConfiguration.Expression, m.PatchType, c, at.Child("applyConfiguration", "expression"))...)
		}
		if m.JSONPatch != nil {
			errs = append(errs, patchFieldForbidden("jsonPatch", m.PatchType, at))
		}
	default:
		errs = append(errs, check.SupportedInOrder(m.PatchType, at.Child("patchType"), patchTypes...)...)
	}
	return errs
}

func patchFieldRequired(name string, t admissionregistrationv1.PatchType, at *field.Path) *field.Error {
	return field.Required(at.Child(name), fmt.Sprintf("must be specified when patchType is %s", t))
}

func patchFieldForbidden(name string, t admissionregistrationv1.PatchType, at *field.Path) *field.Error {
	return field.Invalid(at.Child(name), "{"+name+"}", fmt.Sprintf("must not be specified when patchType is %s", t))
}

func validatePatch(text string, t admissionregistrationv1.PatchType, c *compilers, at *field.Path) field.ErrorList {
	if strings.TrimSpace(text) == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if t == admissionregistrationv1.PatchTypeJSONPatch {
		return c.mutation(text, at, condition.PatchesType)
	}
	return c.mutation(text, at, condition.ObjectType)
}
