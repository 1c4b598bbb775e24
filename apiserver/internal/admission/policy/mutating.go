package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/celexpression"
)

// MutatingName is upstream's name of the plugin.
const MutatingName = "MutatingAdmissionPolicy"

// Mutating is the plugin that applies users' mutating policies.
type Mutating struct {
	plugin
	metrics *metrics
	mergers mergers
}

var _ admission.Mutator = (*Mutating)(nil)

// NewMutating returns the plugin for the policies that follower knows.
func NewMutating(follower *Follower, o Options) *Mutating {
	return &Mutating{plugin: newPlugin(follower, o), metrics: newMutatingMetrics(o.Metrics)}
}

// Admit evaluates the policies one after the other, in the order of their names:
// each sees the changes of those before it. The second round includes only those
// that allow reinvocation, and whose result has been changed since.
func (m *Mutating) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.Object == nil {
		return nil // there is nothing to change
	}
	policies, err := m.policies(ctx, a)
	if err != nil || len(policies) == 0 {
		return err
	}
	forms := condition.NewForms(a, m.Cluster, m.Authorizer)
	for i := range policies {
		if a.Rounds.Second && !policies[i].reinvoke {
			continue
		}
		evaluations, failures := m.evaluations(ctx, &policies[i], a, forms)
		for _, failure := range failures {
			if err := m.handleConfigurationError(a, failure); err != nil {
				return err
			}
		}
		for n := range evaluations {
			if err := m.mutateAll(ctx, &evaluations[n], a, forms); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Mutating) handleConfigurationError(a *admission.Attributes, failure *configurationError) error {
	if failure.policy.failOpen {
		return nil
	}
	told := fmt.Sprintf("policy %q denied request: %v", failure.policy.name, failure)
	binding := ""
	if failure.binding != nil {
		binding = failure.binding.name
		told = mutationDenied(failure.policy.name, binding, failure)
	}
	m.metrics.observeCheck(failure.policy.name, binding, "", failureInvalid, 0)
	return refusalError(a, http.StatusForbidden, metav1.StatusReasonForbidden, told, told)
}

func mutationDenied(policy, binding string, err error) string {
	return fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", policy, binding, err)
}

// mutateAll makes the changes of one evaluation.
func (m *Mutating) mutateAll(ctx context.Context, q *evaluation, a *admission.Attributes, forms *condition.Forms) error {
	key := fmt.Sprintf("policy/%s/%s/%d", q.name, q.binding.name, q.paramNumber)
	before, err := forms.Encoded(ctx, q.target)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if a.Rounds.Second && !a.Rounds.ChangedSince(key, before.Text) {
		return nil
	}
	start := m.Clock.Now()
	subject, ok, err := q.matchesConditions(ctx, forms)
	switch {
	case subject == nil && err != nil:
		return err
	case err != nil:
		return m.handleError(ctx, q, a, m.Clock.Since(start), &mutationError{err})
	case !ok:
		return nil
	}
	c := mutationTarget{evaluation: q, attributes: a, forms: forms, budget: celexpression.NewBudget(celconfig.RuntimeCELCostBudget)}
	for i := range q.mutations {
		start := m.Clock.Now()
		err := m.mutate(ctx, c, &q.mutations[i])
		if err := m.handleError(ctx, q, a, m.Clock.Since(start), err); err != nil {
			return err
		}
	}
	left, err := forms.Encoded(ctx, q.target)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !bytes.Equal(before.Text, left.Text) {
		a.Rounds.RequestSecond()
	}
	if q.reinvoke {
		a.Rounds.RecordOutput(key, left.Text)
	}
	return nil
}

// mutationError: an expression has failed, or its result does not fit the object. The
// policy decides what becomes of the request.
type mutationError struct{ cause error }

func (e *mutationError) Error() string { return e.cause.Error() }
func (e *mutationError) Unwrap() error { return e.cause }

// handleError decides on the error of a mutation; nil lets the request pass.
func (m *Mutating) handleError(ctx context.Context, q *evaluation, a *admission.Attributes, took time.Duration, err error) error {
	if err == nil {
		m.metrics.observeCheck(q.name, q.binding.name, "", failureNone, took)
		return nil
	}
	kind := failureInvalid
	if errors.Is(err, celexpression.ErrBudget) {
		kind = failureBudget
	}
	m.metrics.observeCheck(q.name, q.binding.name, "", kind, took)
	var fault *mutationError
	switch {
	case ctx.Err() != nil:
		return admission.TimeoutError(ctx)
	case !errors.As(err, &fault):
		return err
	case q.failOpen:
		return nil
	}
	told := mutationDenied(q.name, q.binding.name, fault)
	return refusalError(a, http.StatusForbidden, metav1.StatusReasonInvalid, told, told)
}
