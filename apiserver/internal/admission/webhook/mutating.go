package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	library "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/jsonpatch"
	"kctl/apiserver/internal/request"
)

// MutatingName is upstream's name of the plugin.
const MutatingName = "MutatingAdmissionWebhook"

// Mutating is the plugin that calls mutating webhooks.
type Mutating struct{ plugin }

var _ admission.Mutator = (*Mutating)(nil)

// NewMutating returns the plugin for the webhooks that follower knows.
func NewMutating(follower *Follower, o condition.Surroundings) *Mutating {
	return &Mutating{plugin{Surroundings: o, kind: mutatingKind, follower: follower, metrics: newMetrics(o.Metrics)}}
}

// Admit calls the webhooks that select the request, one after the other: each
// sees the changes of those before it. The second round includes only those
// that allow reinvocation, and whose result has been changed since.
func (m *Mutating) Admit(ctx context.Context, a *admission.Attributes) error {
	hooks, err := m.hooks(ctx, a)
	if err != nil || len(hooks) == 0 {
		return err
	}
	forms := condition.NewForms(a, m.Cluster, m.Authorizer)
	for index, h := range hooks {
		if a.Rounds.Second && !h.reinvoke {
			continue
		}
		i := &invocation{hook: h, index: index, request: a, forms: forms}
		ok, err := m.shouldCall(ctx, i)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := m.handleError(ctx, i, m.callAndApply(ctx, i)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mutating) callAndApply(ctx context.Context, i *invocation) error {
	rounds := &i.request.Rounds
	of, err := i.forms.Encoded(ctx, i.target)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if rounds.Second && !rounds.ChangedSince(i.key, of.Text) {
		return nil
	}
	changed := false
	defer func() { annotateMutation(ctx, i, changed) }() // also of those that fail or refuse
	start := m.Clock.Now()
	response, err := m.call(ctx, i, of)
	request.Spent(ctx, request.MutatingWebhooks, m.Clock.Since(start))
	if err != nil {
		return err
	}
	if err := m.apply(ctx, i, of, response); err != nil {
		return err
	}
	i.forms.Forget()
	left, err := i.forms.Encoded(ctx, i.target)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if changed = !bytes.Equal(of.Text, left.Text); changed {
		rounds.RequestSecond()
	}
	if i.reinvoke {
		rounds.RecordOutput(i.key, left.Text)
	}
	return nil
}

// apply applies the patch in a webhook's answer to the object.
func (m *Mutating) apply(ctx context.Context, i *invocation, of *condition.Form, response *admissionv1.AdmissionResponse) error {
	if len(response.Patch) == 0 {
		return nil
	}
	if *response.PatchType != admissionv1.PatchTypeJSONPatch {
		return &callError{i.name, fmt.Errorf("unsupported patch type %q", *response.PatchType)}
	}
	patch, err := library.DecodePatch(response.Patch)
	if err != nil {
		return &callError{i.name, fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	}
	if len(patch) == 0 {
		return nil
	}
	if len(patch) > jsonpatch.MaxOperations {
		return &callError{i.name, fmt.Errorf("received a patch of %d operations in webhook response, the limit is %d",
			len(patch), jsonpatch.MaxOperations)}
	}
	if i.request.Object == nil && i.request.ConnectOptions == nil {
		return apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not "+
			"supported for this operation", i.name))
	}
	patched, err := jsonpatch.Apply(patch, of.Text)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if i.request.Object == nil {
		options, err := i.forms.DecodeConnectOptions(ctx, patched, i.target)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		annotatePatch(ctx, i, patch)
		i.request.ReplaceConnectOptions(options)
		return nil
	}
	obj, err := i.forms.Decode(ctx, patched, i.target, false)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	annotatePatch(ctx, i, patch)
	return i.request.Replace(obj)
}

// annotateMutation adds to the audit event whether a webhook has changed the object.
func annotateMutation(ctx context.Context, i *invocation, changed bool) {
	value, err := json.Marshal(struct {
		Configuration string `json:"configuration"`
		Webhook       string `json:"webhook"`
		Mutated       bool   `json:"mutated"`
	}{i.configuration, i.name, changed})
	if err != nil { // it is made of strings
		return
	}
	audit.Annotate(ctx, "mutation.webhook.admission.k8s.io/"+i.annotationSuffix(), string(value))
}

// annotatePatch adds a webhook's patch to the audit event, but only if the
// event contains the object too: the patch may hold secrets.
func annotatePatch(ctx context.Context, i *invocation, patch library.Patch) {
	value, err := json.Marshal(struct {
		Configuration string        `json:"configuration"`
		Webhook       string        `json:"webhook"`
		Patch         library.Patch `json:"patch"`
		PatchType     string        `json:"patchType"`
	}{i.configuration, i.name, patch, string(admissionv1.PatchTypeJSONPatch)})
	if err != nil { // can't happen: the patch was decoded from JSON
		return
	}
	audit.AnnotateAt(ctx, audit.Request, "patch.webhook.admission.k8s.io/"+i.annotationSuffix(), string(value))
}
