package webhook

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/request"
)

// ValidatingName is upstream's name of the plugin.
const ValidatingName = "ValidatingAdmissionWebhook"

// Validating is the plugin that calls validating webhooks.
type Validating struct{ plugin }

var _ admission.Validator = (*Validating)(nil)

// NewValidating returns the plugin for the webhooks that follower knows.
func NewValidating(follower *Follower, o condition.Surroundings) *Validating {
	return &Validating{plugin{Surroundings: o, kind: validatingKind, follower: follower, metrics: newMetrics(o.Metrics)}}
}

// Validate calls all webhooks that select the request, concurrently. If several
// refuse it, the client gets the refusal of the first in order.
func (v *Validating) Validate(ctx context.Context, a *admission.Attributes) error {
	hooks, err := v.hooks(ctx, a)
	if err != nil || len(hooks) == 0 {
		return err
	}
	forms := condition.NewForms(a, v.Cluster, v.Authorizer)
	var invocations []*invocation
	for index, h := range hooks {
		i := &invocation{hook: h, index: index, request: a, forms: forms}
		ok, err := v.shouldCall(ctx, i)
		if err != nil {
			return err
		}
		if ok {
			invocations = append(invocations, i)
		}
	}
	return v.callAll(ctx, invocations)
}

func (v *Validating) callAll(ctx context.Context, invocations []*invocation) error {
	errs := make([]error, len(invocations))
	var running sync.WaitGroup
	start := v.Clock.Now()
	for n, i := range invocations {
		of, err := i.forms.Encoded(ctx, i.target)
		if err != nil {
			errs[n] = apierrors.NewInternalError(err)
			continue
		}
		running.Go(func() { errs[n] = v.callOne(ctx, i, of) })
	}
	running.Wait()
	request.Spent(ctx, request.ValidatingWebhooks, v.Clock.Since(start))
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *Validating) callOne(ctx context.Context, i *invocation, of *condition.Form) error {
	response, err := v.call(ctx, i, of)
	if err == nil && len(response.Patch) > 0 {
		err = &callError{i.name, errors.New("received invalid webhook response: validating webhook may not return response.patch")}
	}
	return v.handleError(ctx, i, err)
}
