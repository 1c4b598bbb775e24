package condition

import (
	"context"
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"kctl/apiserver/internal/celexpression"
)

// Conditions are compiled match conditions. They are safe for concurrent use.
type Conditions struct{ conditions []namedCondition }

type namedCondition struct {
	name string
	Expression
}

// Compile compiles match conditions with a compiler without variables.
func Compile(conditions []admissionregistrationv1.MatchCondition, c *Compiler) *Conditions {
	out := &Conditions{conditions: make([]namedCondition, len(conditions))}
	for i, condition := range conditions {
		out.conditions[i] = namedCondition{condition.Name, c.Expression(condition.Expression, cel.BoolType)}
	}
	return out
}

// Match reports whether all conditions are true. A false one decides, whatever
// the others yield; err is about those that could not be evaluated. failed is
// the name of the false condition.
func (c *Conditions) Match(ctx context.Context, s *Subject) (matches bool, failed string, err error) {
	budget := celexpression.NewBudget(celconfig.RuntimeCELCostBudgetMatchConditions)
	var errs []error
	for i := range c.conditions {
		value, err := c.conditions[i].Evaluate(ctx, s, budget)
		switch {
		case errors.Is(err, celexpression.ErrBudget):
			return false, "", err // that is all there is to say
		case err != nil:
			errs = append(errs, err)
		case value != types.True:
			return false, c.conditions[i].name, nil
		}
	}
	if len(errs) > 0 {
		return false, "", utilerrors.NewAggregate(errs)
	}
	return true, "", nil
}
