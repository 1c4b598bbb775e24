package webhook

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/audit"
)

const mutatingKind, validatingKind = "mutating", "validating"

// plugin is common to both.
type plugin struct {
	condition.Surroundings
	kind     string // its name in metrics and traces
	follower *Follower
	metrics  *metrics
}

// Handles implements admission.Plugin.
func (p *plugin) Handles(admission.Operation) bool { return true }

// hooks are the registered ones. A request that is about webhooks is seen by those that
// no request can change.
func (p *plugin) hooks(ctx context.Context, a *admission.Attributes) ([]*hook, error) {
	if match.Exempt(a) {
		return load(&p.follower.static), nil
	}
	if err := match.Ready(ctx, p.follower.Synced()); err != nil {
		return nil, err
	}
	return p.follower.current(), nil
}

// invocation is a webhook, the index-th of all, with the request for which it
// may be called.
type invocation struct {
	*hook
	index   int
	request *admission.Attributes
	forms   *condition.Forms
	// target is the form in which it gets the request, once wanted has determined it.
	target match.Target
}

// shouldCall reports whether the webhook is to be called, and determines in which form.
func (p *plugin) shouldCall(ctx context.Context, i *invocation) (ok bool, err error) {
	if i.configError != nil {
		return false, p.handleError(ctx, i, &callError{i.name, i.configError})
	}
	if i.target, ok, err = i.criteria.Match(ctx, i.request, p.Cluster); err != nil || !ok {
		return false, err
	}
	if i.conditions != nil {
		if ok, err := p.meetsConditions(ctx, i); err != nil || !ok {
			return false, err
		}
	}
	if i.request.DryRun && i.sideEffects {
		return false, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", i.name))
	}
	return true, nil
}

func (p *plugin) meetsConditions(ctx context.Context, i *invocation) (bool, error) {
	conditions, err := i.conditions()
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	subject, err := i.forms.Subject(ctx, i.target)
	if err != nil {
		return false, err
	}
	ok, _, err := conditions.Match(ctx, subject)
	if err == nil {
		return ok, nil
	}
	if i.failOpen {
		p.failedOpen(ctx, i, err)
		return false, nil
	}
	return false, apierrors.NewForbidden(i.request.Resource.GVR().GroupResource(), i.request.Name, err)
}

// handleError applies the failure policy to a webhook's error; nil lets the request
// pass.
func (p *plugin) handleError(ctx context.Context, i *invocation, err error) error {
	var call *callError
	if !errors.As(err, &call) {
		return err
	}
	if ctx.Err() != nil {
		return admission.TimeoutError(ctx)
	}
	if i.failOpen {
		p.failedOpen(ctx, i, err)
		return nil
	}
	p.Logger.Warn("calling a webhook failed, so the request is rejected", zap.String("webhook", i.name), zap.String("error", call.why()))
	return apierrors.NewInternalError(call)
}

func (p *plugin) failedOpen(ctx context.Context, i *invocation, err error) {
	p.Logger.Warn("calling a webhook failed, but its failure policy lets the request pass", zap.String("webhook", i.name), zap.Error(err))
	p.metrics.countFailOpen(p.kind, i.name)
	kind := p.kind
	if kind == mutatingKind {
		kind = "mutation" // upstream's word in this key alone
	}
	audit.Annotate(ctx, fmt.Sprintf("failed-open.%s.webhook.admission.k8s.io/%s", kind, i.annotationSuffix()), i.name)
}

// annotationSuffix is the end of an annotation's key, which identifies the call.
func (i *invocation) annotationSuffix() string {
	round := 0
	if i.request.Rounds.Second {
		round = 1
	}
	return fmt.Sprintf("round_%d_index_%d", round, i.index)
}
