package webhook

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/request"
	"kctl/proto/tracing"
)

// call calls a webhook and passes its warnings to the client and its
// annotations to the audit. A refusal is a status error, any other error an
// callError.
func (p *plugin) call(ctx context.Context, i *invocation, of *condition.Form) (*admissionv1.AdmissionResponse, error) {
	question, err := newRequest(i.request, i.target, of.Text, of.OldText)
	if err != nil {
		return nil, err
	}
	start := p.Clock.Now()
	asking, asked := tracing.Step(ctx, "Call "+p.kind+" webhook")
	asked.SetAttributes(attribute.String("webhook", i.name), attribute.String("operation", string(i.request.Operation)))
	response, err := i.review(asking, question)
	tracing.End(asked, err)
	p.metrics.observeCall(p.kind, i, p.Clock.Since(start), response, err)
	if err != nil {
		return nil, err
	}
	for _, warning := range response.Warnings {
		request.Warn(ctx, warning)
	}
	for key, value := range response.AuditAnnotations {
		p.annotate(ctx, i.name, key, value)
	}
	if !response.Allowed {
		return nil, denialError(i.name, response.Result)
	}
	return response, nil
}

// annotate adds a webhook's own audit annotation, under its name.
func (p *plugin) annotate(ctx context.Context, hook, key, value string) {
	name := hook + "/" + key
	if errs := validation.IsQualifiedName(strings.ToLower(name)); len(errs) > 0 {
		p.Logger.Warn("an audit annotation of a webhook has no valid key", zap.String("webhook", hook), zap.Strings("problems", errs))
		return
	}
	audit.Annotate(ctx, name, value)
}
