package admissionregistration

import (
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/field"
)

// maxConditions bounds the number of match conditions; upstream's.
const maxConditions = 64

// storedExpressions are the already stored texts: they may use what new ones may not.
type storedExpressions map[string]bool

func (e storedExpressions) add(texts ...string) {
	for _, text := range texts {
		e[text] = true
	}
}

func (e storedExpressions) conditions(conditions []admissionregistrationv1.MatchCondition) {
	for _, c := range conditions {
		e.add(c.Expression)
	}
}

func (e storedExpressions) variables(variables []admissionregistrationv1.Variable) {
	for _, v := range variables {
		e.add(v.Expression)
	}
}

func (e storedExpressions) webhooks(webhooks []webhook) {
	for i := range webhooks {
		e.conditions(webhooks[i].MatchConditions)
	}
}

func (e storedExpressions) validating(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	e.conditions(spec.MatchConditions)
	e.variables(spec.Variables)
	for _, v := range spec.Validations {
		e.add(v.Expression, v.MessageExpression)
	}
	for _, a := range spec.AuditAnnotations {
		e.add(a.ValueExpression)
	}
}

func (e storedExpressions) mutating(spec *admissionregistrationv1.MutatingAdmissionPolicySpec) {
	e.conditions(spec.MatchConditions)
	e.variables(spec.Variables)
	for _, m := range spec.Mutations {
		if m.ApplyConfiguration != nil {
			e.add(m.ApplyConfiguration.Expression)
		}
		if m.JSONPatch != nil {
			e.add(m.JSONPatch.Expression)
		}
	}
}

// compilers are made for the first expression.
type compilers struct {
	options           condition.Options
	stored            storedExpressions
	forNew, forStored *condition.Compiler
	failed            error
}

// of returns the compiler for a text, depending on whether it is already stored.
func (c *compilers) of(text string) *condition.Compiler {
	if c.stored[text] {
		return c.make(&c.forStored, celexpression.Stored)
	}
	return c.make(&c.forNew, celexpression.New)
}

func (c *compilers) make(compiler **condition.Compiler, origin celexpression.Origin) *condition.Compiler {
	if *compiler == nil {
		o := c.options
		o.Origin = origin
		*compiler, c.failed = condition.NewCompiler(o)
	}
	return *compiler
}

// check compiles a text and returns its errors.
func (c *compilers) check(text string, at *field.Path, returns ...*cel.Type) field.ErrorList {
	compiler := c.of(text)
	if c.failed != nil {
		return field.ErrorList{field.InternalError(at, c.failed)}
	}
	_, err := compiler.Compile(text, returns...)
	return compileError(err, text, at)
}

func (c *compilers) message(text string, at *field.Path) field.ErrorList {
	compiler := c.of(text)
	if c.failed != nil {
		return field.ErrorList{field.InternalError(at, c.failed)}
	}
	_, err := compiler.CompileMessage(text)
	return compileError(err, text, at)
}

func (c *compilers) mutation(text string, at *field.Path, returns *cel.Type) field.ErrorList {
	compiler := c.of(text)
	if c.failed != nil {
		return field.ErrorList{field.InternalError(at, c.failed)}
	}
	_, err := compiler.CompileMutation(text, returns)
	return compileError(err, text, at)
}

// declare compiles a variable, for both kinds of texts.
func (c *compilers) declare(name, text string, at *field.Path) field.ErrorList {
	used := c.of(text)
	other := c.make(&c.forStored, celexpression.Stored)
	if used == other {
		other = c.make(&c.forNew, celexpression.New)
	}
	if c.failed != nil {
		return field.ErrorList{field.InternalError(at, c.failed)}
	}
	_, err := used.Declare(name, text)
	_, _ = other.Declare(name, text)
	return compileError(err, text, at)
}

func compileError(err *apiservercel.Error, text string, at *field.Path) field.ErrorList {
	switch {
	case err == nil:
		return nil
	case err.Type == apiservercel.ErrorTypeInternal:
		return field.ErrorList{field.InternalError(at, err)}
	}
	return field.ErrorList{field.Invalid(at, text, err.Detail)}
}

func validateMatchConditions(conditions []admissionregistrationv1.MatchCondition, c *compilers, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxConditions {
		return append(errs, field.TooMany(at, len(conditions), maxConditions))
	}
	names := map[string]bool{}
	for i, condition := range conditions {
		at := at.Index(i)
		if strings.TrimSpace(condition.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else {
			errs = append(errs, c.check(condition.Expression, at.Child("expression"), cel.BoolType)...)
		}
		if condition.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		}
		for _, message := range validation.IsQualifiedName(condition.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), condition.Name, message))
		}
		if names[condition.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), condition.Name))
		}
		names[condition.Name] = true
	}
	return errs
}
