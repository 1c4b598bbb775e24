package celexpression

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

// maxLength bounds the text of one expression: parsing takes many times its
// size in memory, and no object is longer.
const maxLength = int(celconfig.MaxRequestSizeBytes)

// Program is a compiled expression.
type Program struct {
	program cel.Program
	// Returns is the type of its value, as far as it is known before it runs.
	Returns *cel.Type
}

// Compile compiles an expression whose value has to be of one of the given
// types; none means any.
func Compile(env *cel.Env, text string, returns ...*cel.Type) (*Program, *apiservercel.Error) {
	checked, err := Check(env, text, returns...)
	if err != nil {
		return nil, err
	}
	return checked.Program, nil
}

// Checked is a Program with its syntax tree, which takes more memory than is
// worth keeping.
type Checked struct {
	*Program
	env *cel.Env
	ast *cel.Ast
}

// Check is Compile for callers that need to know more about the expression.
func Check(env *cel.Env, text string, returns ...*cel.Type) (*Checked, *apiservercel.Error) {
	if len(text) > maxLength {
		return nil, invalidError(fmt.Sprintf("compilation failed: an expression has no more than %d bytes", maxLength), nil)
	}
	compiled, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, invalidError("compilation failed: "+issues.String(), apiservercel.NewCompilationError(issues))
	}
	if got := compiled.OutputType(); !returnsOneOf(got, returns) {
		return nil, invalidError(typeNames(returns)+" but got "+got.String(), nil)
	}
	program, err := env.Program(compiled, cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.CustomDecoratorV2(boundQuantities),
		cel.CustomDecoratorV2(boundCalls(env)), costTrackers())
	if err != nil {
		return nil, &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: "program instantiation failed: " + err.Error(), Cause: err}
	}
	return &Checked{&Program{program: program, Returns: compiled.OutputType()}, env, compiled}, nil
}

// Mentions reports whether the expression uses a variable.
func (c *Checked) Mentions(variable string) bool {
	for _, reference := range c.ast.NativeRep().ReferenceMap() {
		if reference.Name == variable {
			return true
		}
	}
	return false
}

// Selects reports whether the expression reads a field of a variable by name,
// as x.name, has(x.name) or x.?name.
func (c *Checked) Selects(variable, name string) bool {
	found := false
	ast.PreOrderVisit(c.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		var of ast.Expr
		switch e.Kind() {
		case ast.SelectKind:
			if s := e.AsSelect(); s.FieldName() == name {
				of = s.Operand()
			}
		case ast.CallKind:
			if call := e.AsCall(); call.FunctionName() == operators.OptSelect && call.Args()[1].AsLiteral().Equal(types.String(name)) == types.True {
				of = call.Args()[0]
			}
		}
		found = found || of != nil && of.Kind() == ast.IdentKind && of.AsIdent() == variable
	}))
	return found
}

// Cost is the maximum cost of an evaluation, given the sizes of values.
func (c *Checked) Cost(sizes checker.CostEstimator) (uint64, error) {
	estimate, err := c.env.EstimateCost(c.ast, &library.CostEstimator{SizeEstimator: sizes}, checker.PresenceTestHasCost(false))
	if err != nil {
		return 0, fmt.Errorf("estimate the cost of an expression: %w", err)
	}
	return estimate.Max, nil
}

func invalidError(detail string, cause error) *apiservercel.Error {
	return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: detail, Cause: cause}
}

// returnsOneOf also refuses types that are only known at run time, so that
// users learn of it early, as in upstream.
func returnsOneOf(got *cel.Type, wanted []*cel.Type) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, got.IsExactType)
}

func typeNames(types []*cel.Type) string {
	if len(types) == 1 {
		return "must evaluate to " + types[0].String()
	}
	names := make([]string, 0, len(types))
	for _, t := range types {
		names = append(names, t.String())
	}
	return "must evaluate to one of [" + strings.Join(names, " ") + "]"
}

// Errors of Evaluate besides those of the expression itself.
var (
	// ErrBudget: the expressions that share a Budget have used it up.
	ErrBudget = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")
	// ErrCallLimit: this expression alone has cost too much.
	ErrCallLimit = errors.New("operation cancelled: actual cost limit exceeded")
)

// Budget is the remaining cost for the expressions that share it. It is not
// safe for concurrent use.
type Budget struct{ left int64 }

// NewBudget returns a budget of cost, in the units of celconfig.PerCallLimit,
// which is about a tenth of a second.
func NewBudget(cost int64) *Budget { return &Budget{left: cost} }

func (b *Budget) spend(details *cel.EvalDetails) error {
	if details == nil || details.ActualCost() == nil {
		return fmt.Errorf("%w: the cost of an expression is not known", ErrBudget)
	}
	cost := *details.ActualCost()
	if cost > uint64(max(b.left, 0)) {
		b.left = 0
		return ErrBudget
	}
	b.left -= int64(cost)
	return nil
}

// Left is what has not been used yet.
func (b *Budget) Left() int64 { return b.left }

// take uses cost for something that is not an expression of its own.
func (b *Budget) take(cost int64) { b.left -= cost }

// Evaluate runs the program with the variables, an interpreter.Activation or a
// map[string]any. It ends with ctx.
func (p *Program) Evaluate(ctx context.Context, variables any, budget *Budget) (ref.Val, error) {
	if budget.left <= 0 {
		return nil, ErrBudget
	}
	value, details, err := p.program.ContextEval(ctx, variables)
	if isLimit(err) {
		// A call that exceeds its limit has used all of it.
		budget.take(celconfig.PerCallLimit)
		return nil, ErrCallLimit
	}
	if drawn := budget.spend(details); drawn != nil && err == nil {
		err = drawn
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// isLimit reports whether an evaluation was ended because of its cost.
func isLimit(err error) bool {
	var cancelled interpreter.EvalCancelledError
	return errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded ||
		err != nil && err.Error() == ErrCallLimit.Error()
}
