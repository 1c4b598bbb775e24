package validationrules

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"

	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/customresources/structural"
)

// Rules are the compiled rules of one schema. They are immutable and safe for
// concurrent use.
type Rules struct{ root *node }

// node is a place in a schema at which, or below which, there are rules.
type node struct {
	schema *structural.Schema
	shown  *adapted
	rules  []rule

	fields        map[string]*node
	items, values *node
}

// rule is one rule, compiled.
type rule struct {
	source apiextensionsv1.ValidationRule
	check  *celexpression.Program
	// message may be nil.
	message *celexpression.Program
	// transition: the rule uses oldSelf; optional: also if there is no old value.
	transition, optional bool
	at                   []step
}

// Compile compiles the rules of a schema; nil if it has none.
func Compile(root *structural.Schema) (*Rules, error) {
	if root == nil || !root.HasRules() {
		return nil, nil
	}
	c := &compiler{}
	n := c.node(root, newAdapted(root, true), true)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return &Rules{n}, nil
}

type compiler struct{ errs []error }

func (c *compiler) node(s *structural.Schema, shown *adapted, root bool) *node {
	if s == nil || !s.HasRules() {
		return nil
	}
	n := &node{schema: s, shown: shown}
	if root || shown.props.XEmbeddedResource {
		n.shown = shown.whole
	}
	if len(shown.props.XValidations) > 0 {
		p, err := newPlace(n.shown, root, alwaysStored)
		if err != nil {
			c.errs = append(c.errs, err)
			return nil
		}
		for _, source := range shown.props.XValidations {
			one, failed := p.compile(source)
			if failed.any() != nil {
				c.errs = append(c.errs, fmt.Errorf("rule %q: %w", source.Rule, failed.any()))
				continue
			}
			n.rules = append(n.rules, one.rule(s))
		}
	}
	for name, property := range s.Properties() {
		if below := c.node(property, shown.fields[name].(*adapted), false); below != nil {
			if n.fields == nil {
				n.fields = map[string]*node{}
			}
			n.fields[name] = below
		}
	}
	if items := s.Items(); items != nil {
		n.items = c.node(items, shown.items.(*adapted), false)
	}
	if values, _ := s.Values(); values != nil {
		n.values = c.node(values, shown.values.Schema().(*adapted), false)
	}
	return n
}

// place is where rules are attached, and what they see there.
type place struct {
	declared *apiservercel.DeclType
	stored   func(expression string) bool
	// plain is for most rules, optional for those whose old value is.
	plain, optional *environment.EnvSet
}

var errNoType = errors.New("internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert " +
	"structural schema to CEL declarations")

func alwaysStored(string) bool { return true }

// newPlace prepares for the rules of a schema. Those of their expressions that are stored may
// use what any release allowed, the others what this one allows in new ones.
func newPlace(shown *adapted, root bool, stored func(expression string) bool) (*place, error) {
	declared := common.SchemaDeclType(shown, root || shown.props.XEmbeddedResource)
	if declared == nil {
		return nil, errNoType
	}
	return &place{declared: declared.MaybeAssignTypeName("selfType"), stored: stored}, nil
}

// set is what a rule's expressions see; it is expensive, so it is made when first needed.
func (p *place) set(source *apiextensionsv1.ValidationRule) (set *environment.EnvSet, err error) {
	kept, old := &p.plain, p.declared.CelType()
	if source.OptionalOldSelf != nil && *source.OptionalOldSelf {
		kept, old = &p.optional, cel.OptionalType(old)
	}
	if *kept == nil {
		*kept, err = celexpression.Environment([]*apiservercel.DeclType{p.declared},
			cel.Variable("self", p.declared.CelType()), cel.Variable("oldSelf", old))
	}
	return *kept, err
}

// compiled is a compiled rule with data that is needed only while checking.
type compiled struct {
	source         apiextensionsv1.ValidationRule
	check, message *celexpression.Checked
	transition     bool
}

// failures are the errors of a rule's parts.
type failures struct {
	check, message *apiservercel.Error
	other          error
}

func (f failures) any() error {
	switch {
	case f.check != nil:
		return f.check
	case f.message != nil:
		return f.message
	}
	return f.other
}

func (p *place) compile(source apiextensionsv1.ValidationRule) (*compiled, failures) {
	defer observe(compilations, time.Now())
	out := &compiled{source: source}
	set, err := p.set(&source)
	if err != nil {
		return out, failures{other: err}
	}
	check := func(expression string, returns *cel.Type) (*celexpression.Checked, *apiservercel.Error) {
		env := set.NewExpressionsEnv()
		if p.stored(expression) {
			env = set.StoredExpressionsEnv()
		}
		return celexpression.Check(env, expression, returns)
	}
	var failed failures
	if out.check, failed.check = check(source.Rule, cel.BoolType); failed.check == nil {
		out.transition = out.check.Mentions("oldSelf")
	}
	if source.MessageExpression != "" {
		if out.message, failed.message = check(source.MessageExpression, cel.StringType); failed.message == nil {
			out.transition = out.transition || out.message.Mentions("oldSelf")
		}
	}
	return out, failed
}

// rule is what is kept.
func (c *compiled) rule(s *structural.Schema) rule {
	r := rule{
		source: c.source, check: c.check.Program, transition: c.transition,
		optional: c.source.OptionalOldSelf != nil && *c.source.OptionalOldSelf,
	}
	if c.message != nil {
		r.message = c.message.Program
	}
	if c.source.FieldPath != "" {
		r.at, _ = stepsOf(c.source.FieldPath, s) // an accepted path is valid
	}
	return r
}
