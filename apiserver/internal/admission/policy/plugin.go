package policy

import (
	"context"
	"fmt"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/registry"
)

// Options are what both plugins are built from.
type Options struct {
	condition.Surroundings
	Resources Resources
}

// plugin is common to both.
type plugin struct {
	Options
	follower   *Follower
	parameters *parameters
}

func newPlugin(f *Follower, o Options) plugin {
	return plugin{Options: o, follower: f, parameters: newParameters(o.Resources)}
}

// Handles implements admission.Plugin.
func (p *plugin) Handles(admission.Operation) bool { return true }

// policies are the existing ones. To a request that is about policies, those apply that no
// request can change.
func (p *plugin) policies(ctx context.Context, a *admission.Attributes) ([]boundPolicy, error) {
	if match.ExemptOfPolicies(a) {
		return load(&p.follower.static), nil
	}
	if err := match.Ready(ctx, p.follower.Synced()); err != nil {
		return nil, err
	}
	return p.follower.current(), nil
}

// evaluation is a policy to evaluate for a request, with one binding and one
// parameter.
type evaluation struct {
	*policy
	*programs
	binding *binding
	target  match.Target
	params  map[string]any
	// paramNumber distinguishes the parameters of a binding.
	paramNumber int
}

// configurationError: a policy can't be evaluated for any request.
type configurationError struct {
	policy  *policy
	binding *binding // nil where it is about all of them
	cause   error
}

func (e *configurationError) Error() string {
	if e.binding == nil {
		return fmt.Sprintf("failed to configure policy: %v", e.cause)
	}
	return fmt.Sprintf("failed to configure binding: %v", e.cause)
}

func (e *configurationError) Unwrap() error { return e.cause }

// evaluations are a policy's evaluations for a request, and what prevents more.
func (p *plugin) evaluations(ctx context.Context, b *boundPolicy, a *admission.Attributes,
	forms *condition.Forms) (evaluations []evaluation, failures []*configurationError) {
	fail := func(binding *binding, cause error) {
		failures = append(failures, &configurationError{b.policy, binding, cause})
	}
	if b.configError != nil {
		fail(nil, b.configError)
		return nil, failures
	}
	target, ok, err := b.criteria.Match(ctx, a, p.Cluster)
	if err != nil {
		fail(nil, err)
		return nil, failures
	}
	if !ok {
		return nil, nil
	}
	resource, err := p.parameters.resourceFor(b.policy)
	if err != nil {
		fail(nil, err)
		return nil, failures
	}
	for _, binding := range b.bindings {
		found, selected, err := p.parametersOf(ctx, binding, resource, a)
		if err != nil {
			fail(binding, err)
			continue
		}
		if !selected || len(found) == 0 {
			continue
		}
		if _, err := forms.Of(ctx, target); err != nil {
			fail(binding, fmt.Errorf("failed to convert object version: %w", err))
			continue
		}
		programs, err := b.programs()
		if err != nil {
			fail(binding, err)
			continue
		}
		for number, params := range found {
			evaluations = append(evaluations, evaluation{b.policy, programs, binding, target, params, number})
		}
	}
	return evaluations, failures
}

// parametersOf are the parameters with which a binding has its policy evaluated for the
// request, if it selects that.
func (p *plugin) parametersOf(ctx context.Context, b *binding, in registry.Resource,
	a *admission.Attributes) (found []map[string]any, selected bool, err error) {
	if b.configError != nil {
		return nil, false, b.configError
	}
	if _, ok, err := b.criteria.Match(ctx, a, p.Cluster); err != nil || !ok {
		return nil, false, err
	}
	found, err = p.parameters.forBinding(ctx, b, in, a)
	return found, true, err
}

// matchesConditions reports whether a request meets a policy's match conditions, and
// returns the request as its expressions see it.
func (q *evaluation) matchesConditions(ctx context.Context, forms *condition.Forms) (*condition.Subject, bool, error) {
	subject, err := forms.Subject(ctx, q.target)
	if err != nil {
		return nil, false, err
	}
	subject = subject.WithParams(q.params)
	ok, _, err := q.conditions.Match(ctx, subject)
	return subject, ok, err
}
