package validationrules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"kctl/apiserver/internal/celexpression"
)

// Validate runs the rules on an object; if hasOld, old is its earlier state.
// Unchanged parts don't prevent changes elsewhere, except by rules that compare
// the two.
func (r *Rules) Validate(ctx context.Context, object, old any, hasOld bool) field.ErrorList {
	if r == nil {
		return nil
	}
	run := &run{ctx: ctx, budget: celexpression.NewBudget(celconfig.RuntimeCELCostBudget)}
	run.node(r.root, nil, object, old, hasOld, false)
	return run.errs
}

// run is one validation.
type run struct {
	ctx    context.Context
	budget *celexpression.Budget
	errs   field.ErrorList
	// all: what is unchanged is validated, too.
	all bool
	// ended: nothing more is run.
	ended bool
}

// node validates a value and its content. kept: for a value without a
// counterpart, whether the list that contains it is unchanged.
func (r *run) node(n *node, path *field.Path, value, old any, hasOld, kept bool) {
	if n == nil || r.ended || value == nil {
		return
	}
	if old == nil {
		hasOld = false
	}
	if hasOld {
		kept = (len(n.rules) > 0 || n.items != nil) && n.schema.Same(value, old)
	}
	r.own(n, path, value, old, hasOld, kept)
	switch v := value.(type) {
	case map[string]any:
		before, _ := old.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			was, found := before[name]
			if below, ok := n.fields[name]; ok {
				r.node(below, path.Child(name), v[name], was, found, kept)
			} else if n.values != nil && n.schema.Property(name) == nil {
				r.node(n.values, path.Key(name), v[name], was, found, kept)
			}
		}
	case []any:
		if n.items == nil {
			return
		}
		counterpart := n.schema.Counterpart(old)
		for i, item := range v {
			was, found := counterpart(i, item)
			r.node(n.items, path.Index(i), item, was, found, kept)
		}
	}
}

// own runs the rules attached to the value itself.
func (r *run) own(n *node, path *field.Path, value, old any, hasOld, unchanged bool) {
	if len(n.rules) == 0 {
		return
	}
	defer observe(evaluations, time.Now())
	self := common.UnstructuredToVal(value, n.shown)
	var before ref.Val
	if hasOld {
		before = common.UnstructuredToVal(old, n.shown)
	}
	for i := range n.rules {
		one := &n.rules[i]
		if !one.transition && unchanged && !r.all {
			continue
		}
		variables := map[string]any{"self": self}
		switch {
		case one.optional && before != nil:
			variables["oldSelf"] = types.OptionalOf(before)
		case one.optional:
			variables["oldSelf"] = types.OptionalNone
		case before != nil:
			variables["oldSelf"] = before
		case one.transition:
			continue
		}
		r.rule(one, path, value, variables)
		if r.ended {
			return
		}
	}
}

func (r *run) rule(one *rule, path *field.Path, value any, variables map[string]any) {
	result, err := one.check.Evaluate(r.ctx, variables, r.budget)
	invalid := func(format string, args ...any) {
		r.errs = append(r.errs, field.Invalid(path, kindOf(value), fmt.Sprintf(format, args...)))
	}
	switch {
	case errors.Is(err, celexpression.ErrBudget):
		r.ended = true
		invalid("%v", celexpression.ErrBudget)
	case errors.Is(err, celexpression.ErrCallLimit):
		r.ended = true
		invalid("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %s", err, called(&one.source))
	case r.ctx.Err() != nil:
		r.ended = true
		invalid("%v evaluating rule: %s", r.ctx.Err(), called(&one.source))
	case err != nil:
		invalid("%v evaluating rule: %s", err, called(&one.source))
	case result != types.True:
		r.errs = append(r.errs, failure(one, path, value, r.message(one, variables)))
	}
}

// message is a failed rule's message.
func (r *run) message(one *rule, variables map[string]any) string {
	if one.message != nil {
		value, err := one.message.Evaluate(r.ctx, variables, r.budget)
		text, ok := value.(types.String)
		said := strings.TrimSpace(string(text))
		// One that can't be evaluated counts as none.
		if err == nil && ok && said != "" && !strings.ContainsAny(said, "\r\n") && len(said) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes {
			return said
		}
	}
	if one.source.Message != "" {
		return strings.TrimSpace(one.source.Message)
	}
	return "failed rule: " + ruleText(&one.source)
}

func ruleText(source *apiextensionsv1.ValidationRule) string { return strings.TrimSpace(source.Rule) }

// called is how errors name a rule that could not be evaluated: its message is
// more helpful to users than its text.
func called(source *apiextensionsv1.ValidationRule) string {
	return cmp.Or(strings.TrimSpace(source.Message), ruleText(source))
}

// failure is the error of a failed rule, with its reason.
func failure(one *rule, path *field.Path, value any, message string) *field.Error {
	path = follow(path, one.at)
	reason := apiextensionsv1.FieldValueInvalid
	if one.source.Reason != nil {
		reason = *one.source.Reason
	}
	switch reason {
	case apiextensionsv1.FieldValueRequired:
		return field.Required(path, message)
	case apiextensionsv1.FieldValueForbidden:
		return field.Forbidden(path, message)
	case apiextensionsv1.FieldValueDuplicate:
		return field.Duplicate(path, shownOf(value))
	}
	return field.Invalid(path, shownOf(value), message)
}

// shownOf is what an error shows of a value: not the content of objects and
// lists.
func shownOf(value any) any {
	switch value.(type) {
	case map[string]any, []any:
		return field.OmitValueType{}
	}
	return value
}

func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	}
	return "number"
}
