package validationrules

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/customresources/structural"
)

// Check refuses rules that can't be compiled, are contradictory or may cost too
// much; path is the schema's path in the definition. Expressions that are stored already may
// use more than new ones.
func Check(ctx context.Context, path *field.Path, root *structural.Schema, stored Expressions) field.ErrorList {
	if root == nil || !root.HasRules() {
		return nil
	}
	c := &checker{ctx: ctx, stored: stored}
	c.place(path, root, newAdapted(root, true), position{root: true, times: 1})
	if err := ctx.Err(); err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	c.checkTotal(path)
	if len(c.errs) == 0 {
		c.checkDefaults(path, root)
	}
	return c.errs
}

// checker walks through a schema.
type checker struct {
	ctx    context.Context
	stored Expressions
	errs   field.ErrorList
	costs  []cost
	total  uint64
}

// position is what the schemas above determine about a place.
type position struct {
	root bool
	// times is the maximum number of such values in one object, as far as lists
	// and maps are bounded; unbounded: one of them is not.
	times     uint64
	unbounded bool
	// loose is the list, if any, whose entries have no counterpart in the old
	// list.
	loose *field.Path
}

func (c *checker) add(err *field.Error) { c.errs = append(c.errs, err) }

func (c *checker) place(path *field.Path, s *structural.Schema, shown *adapted, at position) {
	if s == nil || !s.HasRules() || c.ctx.Err() != nil {
		return
	}
	if all := shown.props.XValidations; len(all) > 0 {
		c.rules(path.Child("x-kubernetes-validations"), s, shown, at, all)
	}
	below := at
	below.root = false
	for _, name := range slices.Sorted(maps.Keys(s.Properties())) {
		c.place(path.Child("properties").Key(name), s.Property(name), shown.fields[name].(*adapted), below)
	}
	if items := s.Items(); items != nil {
		inList := below.within(shown.props.MaxItems)
		if shown.XListType() != "map" && inList.loose == nil {
			inList.loose = path
		}
		c.place(path.Child("items"), items, shown.items.(*adapted), inList)
	}
	if values, _ := s.Values(); values != nil {
		c.place(path.Child("additionalProperties"), values, shown.values.Schema().(*adapted), below.within(shown.props.MaxProperties))
	}
}

// within is the position of something that occurs at most so many times.
func (at position) within(most *int64) position {
	if most == nil {
		at.unbounded = true
	} else {
		at.times = multiply(at.times, uint64(max(*most, 0)))
	}
	return at
}

// most is the maximum number of values of a type: unless bounded otherwise, as
// many as fit into a request, separated by commas.
func (at position) most(declared *apiservercel.DeclType) uint64 {
	if at.unbounded {
		return uint64(celconfig.MaxRequestSizeBytes / (declared.MinSerializedSize + 1))
	}
	return at.times
}

func (c *checker) rules(path *field.Path, s *structural.Schema, shown *adapted, at position, all []apiextensionsv1.ValidationRule) {
	if at.root || shown.props.XEmbeddedResource {
		shown = shown.whole
	}
	p, err := newPlace(shown, at.root, c.stored.has)
	if err != nil {
		c.add(field.InternalError(path, err))
		return
	}
	for i, source := range all {
		if c.ctx.Err() != nil {
			return // Check reports it
		}
		before := len(c.errs)
		c.words(path.Index(i), s, &source)
		rule := strings.TrimSpace(source.Rule)
		unsaid := hasLineBreaks(rule) && source.Message == ""
		blank := source.MessageExpression != "" && strings.TrimSpace(source.MessageExpression) == ""
		if rule == "" || unsaid || blank && len(c.errs) > before {
			continue
		}
		c.compiles(path.Index(i), p, source, at)
	}
}

var reasons = []apiextensionsv1.FieldValueErrorReason{
	apiextensionsv1.FieldValueDuplicate, apiextensionsv1.FieldValueForbidden, apiextensionsv1.FieldValueInvalid,
	apiextensionsv1.FieldValueRequired,
}

// words checks a rule's fields other than the expressions.
func (c *checker) words(path *field.Path, s *structural.Schema, r *apiextensionsv1.ValidationRule) {
	if strings.TrimSpace(r.Rule) == "" {
		c.add(field.Required(path.Child("rule"), "rule is not specified"))
	}
	message := path.Child("message")
	switch {
	case r.Message != "" && strings.TrimSpace(r.Message) == "":
		c.add(field.Invalid(message, r.Message, "must be non-empty if specified"))
	case hasLineBreaks(r.Message):
		c.add(field.Invalid(message, r.Message, "must not contain line breaks"))
	case hasLineBreaks(strings.TrimSpace(r.Rule)) && r.Message == "":
		c.add(field.Required(message, "message must be specified if rule contains line breaks"))
	}
	if r.MessageExpression != "" && strings.TrimSpace(r.MessageExpression) == "" {
		c.add(field.Required(path.Child("messageExpression"), "messageExpression must be non-empty if specified"))
	}
	if r.Reason != nil && !slices.Contains(reasons, *r.Reason) {
		c.add(field.NotSupported(path.Child("reason"), *r.Reason, reasons))
	}
	if r.FieldPath == "" {
		return
	}
	at := path.Child("fieldPath")
	if strings.TrimSpace(r.FieldPath) == "" {
		c.add(field.Invalid(at, r.FieldPath, "must be non-empty if specified"))
	}
	if hasLineBreaks(r.FieldPath) {
		c.add(field.Invalid(at, r.FieldPath, "must not contain line breaks"))
	}
	if _, ok := stepsOf(r.FieldPath, s); !ok {
		c.add(field.Invalid(at, r.FieldPath, "must be a valid path"))
	}
}

func hasLineBreaks(text string) bool { return strings.ContainsAny(text, "\r\n") }

// compiles checks the expressions of a rule, and their cost.
func (c *checker) compiles(path *field.Path, p *place, source apiextensionsv1.ValidationRule, at position) {
	one, failed := p.compile(source)
	if failed.other != nil {
		c.add(field.InternalError(path, failed.other))
		return
	}
	if failed.check != nil {
		c.refuse(path.Child("rule"), &source, failed.check, "", "cel expression must evaluate to a bool")
	}
	if failed.message != nil {
		c.refuse(path.Child("messageExpression"), &source, failed.message, "messageExpression ", "messageExpression must evaluate to a string")
	}
	if one.check != nil {
		c.price(path.Child("rule"), "rule", one.check, p, at)
	}
	if one.message != nil {
		c.price(path.Child("messageExpression"), "messageExpression", one.message, p, at)
	}
	optional := source.OptionalOldSelf != nil && *source.OptionalOldSelf
	switch {
	case source.OptionalOldSelf != nil && !one.transition:
		c.add(field.Invalid(path.Child("optionalOldSelf"), *source.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
	case one.transition && !optional && at.loose != nil:
		c.add(field.Invalid(path.Child("rule"), source.Rule,
			fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", at.loose)))
	}
}

// refuse reports an error of an expression in upstream's words, showing the
// rule in upstream's form.
func (c *checker) refuse(path *field.Path, source *apiextensionsv1.ValidationRule, err *apiservercel.Error, prefix, wrongType string) {
	detail := prefix + err.Detail
	if strings.HasPrefix(err.Detail, "must evaluate to") {
		detail = wrongType
	}
	c.add(field.Invalid(path, shownRule{
		source.Rule, source.Message, source.MessageExpression, source.Reason, source.FieldPath, source.OptionalOldSelf,
	}, detail))
}

type shownRule struct {
	Rule, Message, MessageExpression string
	Reason                           *apiextensionsv1.FieldValueErrorReason
	FieldPath                        string
	OptionalOldSelf                  *bool
}

// Limits on the estimated cost of rules; upstream's.
const (
	maxRuleCost   = 10_000_000
	maxSchemaCost = 100_000_000
	// mostTold is the number of rules named when they are too expensive together;
	// cheap ones are not named.
	mostTold = 4
	cheap    = maxSchemaCost / 100
)

// cost is the estimated cost of an expression in one object.
type cost struct {
	path *field.Path
	of   uint64
}

const advice = " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"

func (c *checker) price(path *field.Path, what string, e *celexpression.Checked, p *place, at position) {
	once, err := e.Cost(sizes{p.declared})
	if err != nil {
		c.add(field.InternalError(path, fmt.Errorf("failed to estimate cost of %s: %w", what, err)))
		return
	}
	all := multiply(once, at.most(p.declared))
	if all > maxRuleCost {
		c.add(field.Forbidden(path, fmt.Sprintf("estimated %s cost exceeds budget by %s", what, factor(all, maxRuleCost))))
	}
	c.costs = append(c.costs, cost{path, all})
	if c.total += all; c.total < all {
		c.total = math.MaxUint64
	}
}

func factor(cost, limit uint64) string {
	times := float64(cost) / float64(limit)
	if times > 100 {
		return "factor of more than 100x" + advice
	}
	return fmt.Sprintf("factor of %.1fx", times) + advice
}

// checkTotal refuses rules that are too expensive together, and names the most expensive.
func (c *checker) checkTotal(path *field.Path) {
	if c.total <= maxSchemaCost {
		return
	}
	slices.SortStableFunc(c.costs, func(a, b cost) int { return cmp.Compare(b.of, a.of) })
	for i, one := range c.costs[:min(mostTold, len(c.costs))] {
		if i > 0 && one.of < cheap {
			break
		}
		c.add(field.Forbidden(one.path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	c.add(field.Forbidden(path, "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by "+
		factor(c.total, maxSchemaCost)))
}

func multiply(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}

// checkDefaults checks defaults against the rules of their place, but for those below
// additionalProperties, at which upstream does not look. As there, what is missing in one has no
// default, and rules that compare it with the value before have to allow that it stays.
func (c *checker) checkDefaults(path *field.Path, root *structural.Schema) {
	compiled, err := Compile(root)
	if err != nil {
		c.add(field.InternalError(path, err))
		return
	}
	c.defaultsOf(compiled.root, path)
}

func (c *checker) defaultsOf(n *node, path *field.Path) {
	if n == nil {
		return
	}
	if value, ok := n.schema.BareFallback(); ok {
		run := &run{ctx: c.ctx, budget: celexpression.NewBudget(maxRuleCost), all: true}
		run.node(n, path.Child("default"), value, value, true, false)
		if len(run.errs) == 0 { // as in a new object: rules for which the old value is optional
			run.node(n, path.Child("default"), value, nil, false, false)
		}
		c.errs = append(c.errs, run.errs...)
	}
	for _, name := range slices.Sorted(maps.Keys(n.fields)) {
		c.defaultsOf(n.fields[name], path.Child("properties").Key(name))
	}
	c.defaultsOf(n.items, path.Child("items"))
}
