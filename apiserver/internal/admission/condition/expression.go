package condition

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/celexpression"
)

// Expression is a compiled expression. One that does not compile fails at each
// evaluation: it compiled when it was stored, but may not in a later release.
type Expression struct {
	text    string
	program *celexpression.Program
	err     *apiservercel.Error
}

// Expression compiles a text whose value is of one of the types.
func (c *Compiler) Expression(text string, returns ...*cel.Type) Expression {
	program, err := c.Compile(text, returns...)
	return Expression{text, program, err}
}

// Message compiles an expression for the message of a refusal.
func (c *Compiler) Message(text string) Expression {
	program, err := c.CompileMessage(text)
	return Expression{text, program, err}
}

// Mutation compiles an expression that makes a change.
func (c *Compiler) Mutation(text string, returns *cel.Type) Expression {
	program, err := c.CompileMutation(text, returns)
	return Expression{text, program, err}
}

// Variable declares and compiles a variable.
func (c *Compiler) Variable(name, text string) Variable {
	program, err := c.Declare(name, text)
	return Variable{name, Expression{text, program, err}}
}

// Evaluate returns the value for a request. Errors name the expression, unless
// the cost budget is used up.
func (e *Expression) Evaluate(ctx context.Context, s *Subject, budget *celexpression.Budget) (ref.Val, error) {
	value, err := e.evaluate(ctx, s, budget)
	if err != nil && !errors.Is(err, celexpression.ErrBudget) {
		return nil, fmt.Errorf("expression '%s' resulted in error: %w", e.Text(), err)
	}
	return value, err
}

func (e *Expression) evaluate(ctx context.Context, s *Subject, budget *celexpression.Budget) (ref.Val, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.program.Evaluate(ctx, s.variables, budget)
}

// Text is the expression as messages show it.
func (e *Expression) Text() string { return strings.TrimSpace(e.text) }
