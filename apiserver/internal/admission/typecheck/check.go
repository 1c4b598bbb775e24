package typecheck

import (
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/celexpression"
)

// Documents returns the OpenAPI v3 document of a group's version in JSON; false if there is
// none.
type Documents func(schema.GroupVersion) (document []byte, ok bool, err error)

// Check compiles a policy's validations for the types that it selects. A type that is not
// served is left out.
func Check(policy *admissionregistrationv1.ValidatingAdmissionPolicy,
	documents Documents) ([]admissionregistrationv1.ExpressionWarning, error) {
	c := &checker{documents: documents, read: map[schema.GroupVersion]*document{}}
	kinds, err := c.selectedKinds(policy.Spec.MatchConstraints)
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	params, err := c.paramsType(policy.Spec.ParamKind)
	if err != nil {
		return nil, err
	}
	var compilers []typed
	for _, kind := range kinds {
		object, err := c.typeOf(kind, kind.Kind)
		if err != nil {
			return nil, err
		}
		compiler, err := condition.NewCompiler(condition.Options{
			Origin: celexpression.Stored, Params: policy.Spec.ParamKind != nil, Variables: true, Object: object, ParamsType: params,
		})
		if err != nil {
			return nil, err
		}
		for _, v := range policy.Spec.Variables {
			_, _ = compiler.Declare(v.Name, v.Expression) // what is wrong with variables is not reported, as in upstream
		}
		compilers = append(compilers, typed{kind, compiler})
	}
	return warnings(policy, compilers), nil
}

// typed compiles expressions for one type.
type typed struct {
	kind schema.GroupVersionKind
	*condition.Compiler
}

func warnings(policy *admissionregistrationv1.ValidatingAdmissionPolicy, compilers []typed) []admissionregistrationv1.ExpressionWarning {
	var out []admissionregistrationv1.ExpressionWarning
	check := func(at *field.Path, text string) {
		var problems []string
		for _, compiler := range compilers {
			if _, err := compiler.Compile(text); err != nil {
				problems = append(problems, problem(compiler.kind, err))
			}
		}
		if len(problems) > 0 {
			out = append(out, admissionregistrationv1.ExpressionWarning{FieldRef: at.String(), Warning: strings.Join(problems, "\n")})
		}
	}
	for i, v := range policy.Spec.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		check(at.Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(at.Child("messageExpression"), v.MessageExpression)
		}
	}
	return out
}

// problem words what is wrong with an expression for one type, as upstream.
func problem(kind schema.GroupVersionKind, err *apiservercel.Error) string {
	if compilation, ok := errors.AsType[*apiservercel.CompilationError](err.Cause); ok {
		return fmt.Sprintf("%v: %s\n", kind, compilation.Issues)
	}
	return fmt.Sprintf("%v: type checking error: %v\n", kind, err)
}
