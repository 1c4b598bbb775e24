package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/request"
)

// ValidatingName is upstream's name of the plugin.
const ValidatingName = "ValidatingAdmissionPolicy"

// Validating is the plugin that refuses what users' policies forbid.
type Validating struct {
	plugin
	metrics *metrics
}

var _ admission.Validator = (*Validating)(nil)

// NewValidating returns the plugin for the policies that follower knows.
func NewValidating(follower *Follower, o Options) *Validating {
	return &Validating{newPlugin(follower, o), newValidatingMetrics(o.Metrics)}
}

// Validate evaluates every policy that selects the request, even after one has
// refused it: the others may have warnings or audit annotations.
func (v *Validating) Validate(ctx context.Context, a *admission.Attributes) error {
	policies, err := v.policies(ctx, a)
	if err != nil || len(policies) == 0 {
		return err
	}
	outcome := &outcome{a: a}
	forms := condition.NewForms(a, v.Cluster, v.Authorizer)
	for i := range policies {
		evaluations, failures := v.evaluations(ctx, &policies[i], a, forms)
		for _, failure := range failures {
			v.handleConfigurationError(failure, outcome)
		}
		for n := range evaluations {
			if err := v.evaluate(ctx, &evaluations[n], forms, outcome); err != nil {
				return err
			}
		}
	}
	outcome.publish(ctx)
	return outcome.refusal
}

// handleConfigurationError refuses the request, whatever the binding's actions are.
func (v *Validating) handleConfigurationError(m *configurationError, o *outcome) {
	if m.policy.failOpen {
		return
	}
	binding := ""
	if m.binding != nil {
		binding = m.binding.name
	}
	v.metrics.observeCheck(m.policy.name, binding, "deny", failureInvalid, 0)
	o.deny(m.policy.name, binding, m.Error(), metav1.StatusReasonInvalid)
}

// evaluate does one evaluation, and adds the result to the outcome. An error is
// the server's own.
func (v *Validating) evaluate(ctx context.Context, q *evaluation, forms *condition.Forms, o *outcome) error {
	start := v.Clock.Now()
	subject, ok, err := q.matchesConditions(ctx, forms)
	switch {
	case subject == nil && err != nil:
		return err
	case err == nil && !ok:
		return nil
	}
	var decisions []decision
	var problems []error // of audit annotations
	if err != nil {
		decisions = []decision{decisionForError(err)}
	} else {
		decisions = q.validate(ctx, subject)
		problems = q.annotate(ctx, subject, o)
	}
	if ctx.Err() != nil {
		return admission.TimeoutError(ctx)
	}
	took := v.Clock.Since(start)
	if len(decisions) == 0 {
		v.metrics.observeCheck(q.name, q.binding.name, "allow", failureNone, took)
	}
	for _, d := range decisions {
		if d.failure != failureNone && q.failOpen {
			v.metrics.observeCheck(q.name, q.binding.name, "allow", d.failure, took)
			continue
		}
		for _, action := range q.binding.actions {
			v.metrics.observeCheck(q.name, q.binding.name, strings.ToLower(string(action)), d.failure, took)
		}
		o.addDecision(ctx, q, d)
	}
	for _, problem := range problems {
		if !q.failOpen {
			o.deny(q.name, q.binding.name, problem.Error(), metav1.StatusReasonInvalid)
		}
	}
	return nil
}

func decisionForError(err error) decision {
	d := decision{message: err.Error(), reason: metav1.StatusReasonInvalid, failure: failureInvalid}
	if errors.Is(err, celexpression.ErrBudget) {
		d.failure = failureBudget
	}
	return d
}

// validate evaluates the validations and returns those that do not hold. If the
// cost budget is used up, that is the only result.
func (q *evaluation) validate(ctx context.Context, s *condition.Subject) []decision {
	budget := celexpression.NewBudget(celconfig.RuntimeCELCostBudget)
	s = s.WithVariables(ctx, q.variables, budget)
	var decisions []decision
	for i := range q.validations {
		validation := &q.validations[i]
		value, err := validation.Evaluate(ctx, s, budget)
		switch {
		case errors.Is(err, celexpression.ErrBudget):
			return []decision{decisionForError(err)}
		case err != nil:
			d := decisionForError(err)
			d.index = i
			decisions = append(decisions, d)
		case value != types.True:
			decisions = append(decisions, decision{index: i, message: validation.failureMessage(ctx, s, budget), reason: validation.reason})
		}
	}
	return decisions
}

// failureMessage is the message of a failed validation: if the message expression yields
// nothing usable, the fixed one is used.
func (v *validation) failureMessage(ctx context.Context, s *condition.Subject, budget *celexpression.Budget) string {
	if v.expression != nil {
		value, err := v.expression.Evaluate(ctx, s, budget)
		text, ok := value.(types.String)
		message := strings.TrimSpace(string(text))
		if err == nil && ok && message != "" && len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes &&
			!strings.ContainsAny(message, "\r\n") {
			return message
		}
	}
	if v.message != "" {
		return strings.TrimSpace(v.message)
	}
	return "failed expression: " + v.Text()
}

// annotate evaluates the audit annotations. They have a budget of their own, and with it
// variables of their own: what validations cost does not count.
func (q *evaluation) annotate(ctx context.Context, s *condition.Subject, o *outcome) []error {
	budget := celexpression.NewBudget(celconfig.RuntimeCELCostBudget)
	s = s.WithVariables(ctx, q.variables, budget)
	var problems []error
	for i := range q.annotations {
		annotation := &q.annotations[i]
		value, err := annotation.Evaluate(ctx, s, budget)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if text, ok := value.(types.String); ok {
			o.annotate(q.name+"/"+annotation.key, string(text))
		}
	}
	return problems
}

// deniedMessage words a refusal.
func deniedMessage(policy, binding, message string) string {
	if binding == "" {
		return fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", policy, message)
	}
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy, binding, message)
}

// addDecision carries out the binding's actions for a decision.
func (o *outcome) addDecision(ctx context.Context, q *evaluation, d decision) {
	if q.binding.hasAction(admissionregistrationv1.Deny) {
		o.deny(q.name, q.binding.name, d.message, d.reason)
	}
	if q.binding.hasAction(admissionregistrationv1.Audit) && len(o.failures) < maxFailures {
		o.failures = append(o.failures, failureRecord{d.message, q.name, q.binding.name, d.index, q.binding.actions})
	}
	if q.binding.hasAction(admissionregistrationv1.Warn) {
		request.Warn(ctx, fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s",
			q.name, q.binding.name, d.message))
	}
}
