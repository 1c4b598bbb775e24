package admissionregistration

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/jsonpath"
	"kctl/apiserver/internal/resources/check"
)

const (
	maxAnnotations     = 20
	maxAnnotationBytes = 5 << 10
)

var (
	reasons    = []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge}
	identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
	// pathStart is the beginning of a field path, usually a name. Numbers have no meaning.
	pathStart    = regexp.MustCompile(`^((\.{1,2}[^./]|\[)|[ \pL_][^.,\[\]$@{}]*(\.{1,2}[^./]|\[|$)|[-+]?\d+(\.\d+)?([ \pL_][ \pL\pN_]*)?$)`)
	errPathStart = errors.New("it begins with no name")
	// reservedWords are not identifiers in CEL.
	reservedWords = []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
		"import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
	}
)

func validateValidatingPolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy, known storedExpressions) field.ErrorList {
	spec, at := &p.Spec, field.NewPath("spec")
	errs := supportedIfSet(spec.FailurePolicy, at.Child("failurePolicy"), failurePolicies)
	errs = append(errs, validateParamKind(spec.ParamKind, at.Child("paramKind"))...)
	errs = append(errs, validateConstraints(spec.MatchConstraints, at.Child("matchConstraints"))...)
	conditions := &compilers{stored: known, options: condition.Options{Params: spec.ParamKind != nil}}
	errs = append(errs, validateMatchConditions(spec.MatchConditions, conditions, at.Child("matchConditions"))...)
	others := &compilers{stored: known, options: condition.Options{Params: spec.ParamKind != nil, Variables: true}}
	errs = append(errs, validateVariables(spec.Variables, others, at.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(at.Child("validations"), why), field.Required(at.Child("auditAnnotations"), why))
	}
	for i := range spec.Validations {
		errs = append(errs, validateValidation(&spec.Validations[i], others, at.Child("validations").Index(i))...)
	}
	return append(errs, validateAnnotations(p.Name, spec.AuditAnnotations, others, at.Child("auditAnnotations"))...)
}

func validateParamKind(k *admissionregistrationv1.ParamKind, at *field.Path) field.ErrorList {
	if k == nil {
		return nil
	}
	var errs field.ErrorList
	if k.APIVersion == "" {
		errs = append(errs, field.Required(at.Child("apiVersion"), ""))
	} else if version, err := schema.ParseGroupVersion(k.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), k.APIVersion, err.Error()))
	} else {
		if version.Group != "" {
			errs = append(errs, check.Messages(at.Child("apiVersion"), version.Group, validation.IsDNS1123Subdomain(version.Group))...)
		}
		errs = append(errs, check.Messages(at.Child("apiVersion"), version.Version, validation.IsDNS1035Label(version.Version))...)
	}
	if k.Kind == "" {
		return append(errs, field.Required(at.Child("kind"), ""))
	}
	if messages := validation.IsDNS1035Label(strings.ToLower(k.Kind)); len(messages) > 0 {
		errs = append(errs, field.Invalid(at.Child("kind"), k.Kind, "may have mixed case, but should otherwise match: "+
			strings.Join(messages, ",")))
	}
	return errs
}

// validatePolicyStatus checks the type checker's findings: each has a warning, and a
// path to what it is about.
func validatePolicyStatus(s *admissionregistrationv1.ValidatingAdmissionPolicyStatus, at *field.Path) field.ErrorList {
	errs := metav1validation.ValidateConditions(s.Conditions, at.Child("conditions").Upstream())
	if s.TypeChecking == nil {
		return errs
	}
	for i, w := range s.TypeChecking.ExpressionWarnings {
		at := at.Child("typeChecking", "expressionWarnings").Index(i)
		errs = append(errs, check.Required(at, "warning", w.Warning)...)
		ref := strings.TrimSpace(w.FieldRef)
		if ref == "" {
			errs = append(errs, field.Required(at.Child("fieldRef"), ""))
		} else if _, err := jsonpath.Compile("." + strings.TrimPrefix(ref, ".")); err != nil || !pathStart.MatchString(ref) {
			errs = append(errs, field.Invalid(at.Child("fieldRef"), ref, fmt.Sprintf("invalid JSONPath: %v", cmp.Or(err, errPathStart))))
		}
	}
	return errs
}

// validateConstraints checks a policy's match constraints, which are required.
func validateConstraints(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateMatch(m, at)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("resourceRules"), ""))
	}
	return errs
}

func validateVariables(variables []admissionregistrationv1.Variable, c *compilers, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range variables {
		at := at.Index(i)
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "name is not specified"))
		case !identifier.MatchString(v.Name) || slices.Contains(reservedWords, v.Name):
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
			continue
		}
		errs = append(errs, c.declare(v.Name, v.Expression, at.Child("expression"))...)
	}
	return errs
}

func validateValidation(v *admissionregistrationv1.Validation, c *compilers, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
	} else {
		errs = append(errs, c.check(v.Expression, at.Child("expression"), cel.BoolType)...)
	}
	switch {
	case v.MessageExpression == "":
	case strings.TrimSpace(v.MessageExpression) == "":
		errs = append(errs, field.Invalid(at.Child("messageExpression"), v.MessageExpression, "must be non-empty if specified"))
	default:
		errs = append(errs, c.message(v.MessageExpression, at.Child("messageExpression"))...)
	}
	switch {
	case v.Message == "":
	case strings.TrimSpace(v.Message) == "":
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(v.Message, "\n\r"):
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must not contain line breaks"))
	}
	return append(errs, supportedIfSet(v.Reason, at.Child("reason"), reasons)...)
}

func validateAnnotations(policy string, annotations []admissionregistrationv1.AuditAnnotation, c *compilers,
	at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(annotations) > maxAnnotations {
		errs = append(errs, field.Invalid(at, annotations, "must not have more than 20 auditAnnotations"))
	}
	keys := map[string]bool{}
	for i, a := range annotations {
		at := at.Index(i)
		key := policy + "/" + a.Key
		errs = append(errs, check.Messages(at.Child("key"), key, validation.IsQualifiedName(key))...)
		switch text := a.ValueExpression; {
		case strings.TrimSpace(text) == "":
			errs = append(errs, field.Required(at.Child("valueExpression"), "valueExpression is not specified"))
		case len(text) > maxAnnotationBytes:
			errs = append(errs, field.Required(at.Child("valueExpression"), "must not exceed 5120 bytes in length"))
		default:
			errs = append(errs, c.check(text, at.Child("valueExpression"), cel.StringType, cel.NullType)...)
		}
		if keys[a.Key] {
			errs = append(errs, field.Duplicate(at.Child("key"), a.Key))
		}
		keys[a.Key] = true
	}
	return errs
}
