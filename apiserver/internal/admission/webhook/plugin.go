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
	name     string
	kind     string // as metrics and audit annotations call it
	follower *Follower
	metrics  *metrics
}

// Name implements admission.Plugin.
func (p *plugin) Name() string { return p.name }

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

// invocation is a webhook that is to be asked.
type invocation struct {
	*hook
	index  int
	target match.Target
}

// wanted tells whether a webhook is to be asked about the request, and in which
// form.
func (p *plugin) wanted(ctx context.Context, h *hook, index int, a *admission.Attributes, forms *condition.Forms) (*invocation, error) {
	if h.broken != nil {
		return nil, p.failed(ctx, h, index, a, &errCall{h.name, h.broken})
	}
	target, ok, err := h.criteria.Match(ctx, a, p.Cluster)
	if err != nil || !ok {
		return nil, err
	}
	if h.conditions != nil {
		if ok, err := p.meetsConditions(ctx, h, index, target, a, forms); err != nil || !ok {
			return nil, err
		}
	}
	if a.DryRun && h.sideEffects {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.name))
	}
	return &invocation{h, index, target}, nil
}

func (p *plugin) meetsConditions(ctx context.Context, h *hook, index int, target match.Target, a *admission.Attributes, forms *condition.Forms) (bool, error) {
	conditions, err := h.conditions()
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	subject, err := forms.Subject(ctx, target)
	if err != nil {
		return false, err
	}
	ok, _, err := conditions.Match(ctx, subject)
	if err == nil {
		return ok, nil
	}
	if h.failOpen {
		p.failedOpen(ctx, h, index, a, err)
		return false, nil
	}
	return false, apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.Name, err)
}

// failed judges a webhook that made no sense by its failure policy: nil lets
// the request pass.
func (p *plugin) failed(ctx context.Context, h *hook, index int, a *admission.Attributes, err error) error {
	var call *errCall
	if !errors.As(err, &call) {
		return err
	}
	if ctx.Err() != nil {
		// The request has ended; nobody's policy speaks for that.
		return apierrors.NewTimeoutError("request did not complete within requested timeout - "+ctx.Err().Error(), 0)
	}
	if h.failOpen {
		p.failedOpen(ctx, h, index, a, err)
		return nil
	}
	p.Logger.Warn("a webhook could not be asked, the request is refused", zap.String("webhook", h.name), zap.Error(call.cause))
	return apierrors.NewInternalError(call)
}

func (p *plugin) failedOpen(ctx context.Context, h *hook, index int, a *admission.Attributes, err error) {
	p.Logger.Warn("a webhook could not be asked, the request passes without it", zap.String("webhook", h.name), zap.Error(err))
	p.metrics.failedOpen(p.kind, h.name)
	p.Annotate(ctx, fmt.Sprintf("failed-open.%s.webhook.admission.k8s.io/%s", p.kind, place(a, index)), h.name)
}

// place is the end of an annotation's key: which call it was.
func place(a *admission.Attributes, index int) string {
	round := 0
	if a.Rounds.Second {
		round = 1
	}
	return fmt.Sprintf("round_%d_index_%d", round, index)
}
