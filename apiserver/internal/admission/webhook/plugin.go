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
)

// plugin is what both have in common.
type plugin struct {
	condition.Surroundings
	kind     string // as metrics and audit annotations call it
	follower *Follower
	metrics  *metrics
}

// Handles implements admission.Plugin.
func (p *plugin) Handles(admission.Operation) bool { return true }

// hooks are those that there are for a request, none where it is about
// webhooks.
func (p *plugin) hooks(a *admission.Attributes) ([]*hook, error) {
	if err := match.Ready(p.follower.Synced()); err != nil {
		return nil, err
	}
	hooks := p.follower.all()
	if len(hooks) == 0 || match.Exempt(a) {
		return nil, nil
	}
	return hooks, nil
}

// invocation is a webhook, the index-th that there is, and the request that it
// may be asked about.
type invocation struct {
	*hook
	index   int
	request *admission.Attributes
	forms   *condition.Forms
	// target is the form in which it is asked, once it is wanted.
	target match.Target
}

// wanted tells whether the webhook is to be asked, and finds out in which form.
func (p *plugin) wanted(ctx context.Context, i *invocation) (ok bool, err error) {
	if i.broken != nil {
		return false, p.failed(ctx, i, &errCall{i.name, i.broken})
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

// failed judges a webhook that made no sense by its failure policy: nil lets
// the request pass.
func (p *plugin) failed(ctx context.Context, i *invocation, err error) error {
	var call *errCall
	if !errors.As(err, &call) {
		return err
	}
	if ctx.Err() != nil {
		// The request has ended; nobody's policy speaks for that.
		return apierrors.NewTimeoutError("request did not complete within requested timeout - "+ctx.Err().Error(), 0)
	}
	if i.failOpen {
		p.failedOpen(ctx, i, err)
		return nil
	}
	p.Logger.Warn("a webhook could not be asked, the request is refused", zap.String("webhook", i.name), zap.Error(call.cause))
	return apierrors.NewInternalError(call)
}

func (p *plugin) failedOpen(ctx context.Context, i *invocation, err error) {
	p.Logger.Warn("a webhook could not be asked, the request passes without it", zap.String("webhook", i.name), zap.Error(err))
	p.metrics.failedOpen(p.kind, i.name)
	p.Annotate(ctx, fmt.Sprintf("failed-open.%s.webhook.admission.k8s.io/%s", p.kind, i.place()), i.name)
}

// place is the end of an annotation's key: which call it was.
func (i *invocation) place() string {
	round := 0
	if i.request.Rounds.Second {
		round = 1
	}
	return fmt.Sprintf("round_%d_index_%d", round, i.index)
}
