package configuration

import (
	"context"
	"errors"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/celexpression"
)

// Conditions say which requests a webhook is asked about. They are safe for
// concurrent use.
type Conditions struct{ programs []*celexpression.Program }

// compileConditions compiles the conditions of one webhook; none are nil.
func compileConditions(conditions []apiserverv1.WebhookMatchCondition, at *field.Path) (*Conditions, field.ErrorList) {
	if len(conditions) == 0 {
		return nil, nil
	}
	var errs field.ErrorList
	if len(conditions) > maxConditions {
		return nil, append(errs, field.TooMany(at, len(conditions), maxConditions))
	}
	out, seen := &Conditions{}, map[string]bool{}
	for i, condition := range conditions {
		text, path := condition.Expression, at.Index(i).Child("expression")
		switch {
		case text == "":
			errs = append(errs, field.Required(path, ""))
			continue
		case seen[text]:
			errs = append(errs, field.Duplicate(path, text))
			continue
		}
		seen[text] = true
		env, err := environment()
		if err != nil {
			return nil, append(errs, field.InternalError(path, err))
		}
		program, problem := celexpression.Compile(env, text, cel.BoolType)
		if problem != nil {
			errs = append(errs, field.Invalid(path, text, problem.Detail))
			continue
		}
		out.programs = append(out.programs, program)
	}
	return out, errs
}

const maxConditions = 64

// environment is what conditions see: request, which is the spec of a
// SubjectAccessReview.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	texts := apiservercel.NewListType(apiservercel.StringType, -1)
	selector := func(name string) *apiservercel.DeclType {
		requirement := declareObject(name+"Requirement", texts, "values")
		addFields(requirement, apiservercel.StringType, "key", "operator")
		s := declareObject(name+"Attributes", apiservercel.StringType, "rawSelector")
		return addFields(s, apiservercel.NewListType(requirement, -1), "requirements")
	}
	resource := declareObject("ResourceAttributes", apiservercel.StringType,
		"namespace", "verb", "group", "version", "resource", "subresource", "name")
	addFields(resource, selector("FieldSelector"), "fieldSelector")
	addFields(resource, selector("LabelSelector"), "labelSelector")
	spec := declareObject("SubjectAccessReviewSpec", apiservercel.StringType, "user", "uid")
	addFields(spec, texts, "groups")
	addFields(spec, apiservercel.NewMapType(apiservercel.StringType, texts, -1), "extra")
	addFields(spec, resource, "resourceAttributes")
	addFields(spec, declareObject("NonResourceAttributes", apiservercel.StringType, "path", "verb"), "nonResourceAttributes")
	set, err := celexpression.Environment([]*apiservercel.DeclType{spec}, cel.Variable("request", spec.CelType()))
	if err != nil {
		return nil, err
	}
	return set.Env(celexpression.Stored)
})

// declareObject declares a type with fields of one type.
func declareObject(name string, of *apiservercel.DeclType, fields ...string) *apiservercel.DeclType {
	return addFields(apiservercel.NewObjectType("kubernetes."+name, map[string]*apiservercel.DeclField{}), of, fields...)
}

// addFields adds fields of one type.
func addFields(o, of *apiservercel.DeclType, fields ...string) *apiservercel.DeclType {
	for _, name := range fields {
		o.Fields[name] = apiservercel.NewDeclField(name, of, false, nil, nil)
	}
	return o
}

// Match reports whether all conditions are true. A false one decides, whatever
// the others yield; err is about those that could not be evaluated.
func (c *Conditions) Match(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	budget := celexpression.NewBudget(celconfig.RuntimeCELCostBudgetMatchConditions)
	variables := map[string]any{"request": requestVariable(spec)}
	var errs []error
	for _, program := range c.programs {
		value, err := program.Evaluate(ctx, variables, budget)
		switch {
		case err != nil:
			errs = append(errs, err)
		case value != types.True:
			return false, nil
		}
	}
	if len(errs) > 0 {
		return false, errors.Join(errs...)
	}
	return true, nil
}

// requestVariable is a review as conditions see it: empty fields are present, except
// the attributes, of which there is only one kind, and their selectors.
func requestVariable(spec *authorizationv1.SubjectAccessReviewSpec) map[string]any {
	extra := make(map[string]any, len(spec.Extra))
	for key, values := range spec.Extra {
		extra[key] = []string(values)
	}
	out := map[string]any{"user": spec.User, "uid": spec.UID, "groups": spec.Groups, "extra": extra}
	if n := spec.NonResourceAttributes; n != nil {
		out["nonResourceAttributes"] = map[string]any{"path": n.Path, "verb": n.Verb}
	}
	r := spec.ResourceAttributes
	if r == nil {
		return out
	}
	resource := map[string]any{
		"namespace": r.Namespace, "verb": r.Verb, "group": r.Group, "version": r.Version,
		"resource": r.Resource, "subresource": r.Subresource, "name": r.Name,
	}
	if f := r.FieldSelector; f != nil {
		requirements := make([]any, 0, len(f.Requirements))
		for _, q := range f.Requirements {
			requirements = append(requirements, map[string]any{"key": q.Key, "operator": string(q.Operator), "values": q.Values})
		}
		resource["fieldSelector"] = map[string]any{"rawSelector": f.RawSelector, "requirements": requirements}
	}
	if l := r.LabelSelector; l != nil {
		requirements := make([]any, 0, len(l.Requirements))
		for _, q := range l.Requirements {
			requirements = append(requirements, map[string]any{"key": q.Key, "operator": string(q.Operator), "values": q.Values})
		}
		resource["labelSelector"] = map[string]any{"rawSelector": l.RawSelector, "requirements": requirements}
	}
	out["resourceAttributes"] = resource
	return out
}
