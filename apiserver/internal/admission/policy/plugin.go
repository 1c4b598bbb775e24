package policy

import (
	"context"
	"fmt"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/match"
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

// policies are the existing ones; none for a request that is about policies.
func (p *plugin) policies(a *admission.Attributes) ([]bound, error) {
	if err := match.Ready(p.follower.Synced()); err != nil {
		return nil, err
	}
	policies := p.follower.all()
	if len(policies) == 0 || match.ExemptOfPolicies(a) {
		return nil, nil
	}
	return policies, nil
}

// question is a policy to evaluate for a request, with one binding and one
// parameter.
type question struct {
	*policy
	*programs
	binding *binding
	target  match.Target
	params  map[string]any
	// number distinguishes the parameters of a binding.
	number int
}

// misconfigured: a policy can't be evaluated for any request.
type misconfigured struct {
	policy  *policy
	binding *binding // nil where it is about all of them
	cause   error
}

func (e *misconfigured) Error() string {
	if e.binding == nil {
		return fmt.Sprintf("failed to configure policy: %v", e.cause)
	}
	return fmt.Sprintf("failed to configure binding: %v", e.cause)
}

func (e *misconfigured) Unwrap() error { return e.cause }

// questions are a policy's evaluations for a request, and what prevents more.
func (p *plugin) questions(ctx context.Context, b *bound, a *admission.Attributes) (questions []question, failures []*misconfigured) {
	fail := func(binding *binding, cause error) {
		failures = append(failures, &misconfigured{b.policy, binding, cause})
	}
	if b.broken != nil {
		fail(nil, b.broken)
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
	resource, err := p.parameters.resource(b.policy)
	if err != nil {
		fail(nil, err)
		return nil, failures
	}
	for _, binding := range b.bindings {
		if binding.broken != nil {
			fail(binding, binding.broken)
			continue
		}
		if _, ok, err := binding.criteria.Match(ctx, a, p.Cluster); err != nil || !ok {
			if err != nil {
				fail(binding, err)
			}
			continue
		}
		found, err := p.parameters.of(ctx, binding, resource, a)
		if err != nil {
			fail(binding, err)
			continue
		}
		programs, err := b.programs()
		if err != nil {
			fail(binding, err)
			continue
		}
		for number, params := range found {
			questions = append(questions, question{b.policy, programs, binding, target, params, number})
		}
	}
	return questions, failures
}

// meets reports whether a request meets a policy's match conditions, and
// returns the request as its expressions see it.
func (q *question) meets(ctx context.Context, forms *condition.Forms) (*condition.Subject, bool, error) {
	subject, err := forms.Subject(ctx, q.target)
	if err != nil {
		return nil, false, err
	}
	subject = subject.WithParams(q.params)
	ok, _, err := q.conditions.Match(ctx, subject)
	return subject, ok, err
}
