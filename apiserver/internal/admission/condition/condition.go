package condition

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/expression"
)

// Conditions are compiled match conditions. They are safe for concurrent use.
type Conditions struct{ conditions []compiled }

type compiled struct {
	name, text string
	program    *expression.Program
	err        *apiservercel.Error
}

// Compile compiles match conditions with a compiler without variables. One that
// does not compile fails each time it is asked.
func Compile(conditions []admissionregistrationv1.MatchCondition, c *Compiler) *Conditions {
	out := &Conditions{conditions: make([]compiled, len(conditions))}
	for i, condition := range conditions {
		program, err := c.Compile(condition.Expression, cel.BoolType)
		out.conditions[i] = compiled{condition.Name, condition.Expression, program, err}
	}
	return out
}

// Match tells whether all conditions are true. One that is false decides,
// whatever becomes of the others; err is about those that could not be
// evaluated. failed is the name of the condition that was false.
func (c *Conditions) Match(ctx context.Context, s *Subject) (matches bool, failed string, err error) {
	budget := expression.NewBudget(celconfig.RuntimeCELCostBudgetMatchConditions)
	var errs []error
	for _, condition := range c.conditions {
		value, err := condition.evaluate(ctx, s, budget)
		switch {
		case err != nil:
			errs = append(errs, err)
		case value != types.True:
			return false, condition.name, nil
		}
	}
	if len(errs) > 0 {
		return false, "", errors.Join(errs...)
	}
	return true, "", nil
}

func (c *compiled) evaluate(ctx context.Context, s *Subject, budget *expression.Budget) (any, error) {
	if c.err != nil {
		return nil, fmt.Errorf("expression '%s' resulted in error: %w", Trim(c.text), c.err)
	}
	value, err := c.program.Evaluate(ctx, s.Values(), budget)
	if errors.Is(err, expression.ErrBudget) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("expression '%s' resulted in error: %w", Trim(c.text), err)
	}
	return value, nil
}
