package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/webhookclient"
)

// Service answers reviews: a webhookclient.Service.
type Service interface {
	Ask(ctx context.Context, question, answer any) error
}

// Options are a webhook's particulars.
type Options struct {
	Version                string // of the SubjectAccessReview: v1 or v1beta1
	AllowedTTL, RefusedTTL time.Duration
	Clock                  clock.PassiveClock
	// Timeout bounds one question; 0 is the service's own.
	Timeout time.Duration
	// Match reports whether the service is asked about a request; nil for all.
	Match func(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error)
	// Name appears in Metrics; nil for none.
	Name    string
	Metrics *Metrics
	// FailClosed: requests are denied if the service can't be asked.
	FailClosed bool
}

// maxCachedSize is the size of the largest question whose answer is cached:
// long names in requests could fill the memory.
const maxCachedSize = 10_000

// Authorizer is the Webhook authorization mode.
type Authorizer struct {
	service Service
	options Options
	answers *webhookclient.Answers[authorizationv1.SubjectAccessReviewStatus]
}

// New returns an Authorizer that asks service.
func New(service Service, o Options) *Authorizer {
	return &Authorizer{service: service, options: o, answers: webhookclient.NewAnswers[authorizationv1.SubjectAccessReviewStatus](o.Clock)}
}

var errAllowedAndDenied = errors.New("authorization webhook: the answer both allows and denies")

// Authorize implements authz.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	spec := specOf(at)
	if a.options.Match != nil {
		if matches, err := a.options.Match(ctx, &spec); !matches {
			a.observeExclusion(err)
			return a.decideWithoutAnswer(err)
		}
	}
	question, err := json.Marshal(spec)
	if err != nil {
		return authz.NoOpinion, "", fmt.Errorf("authorization webhook: %w", err)
	}
	key := string(question)
	status, ok := a.answers.Get(key)
	if !ok {
		began := a.options.Clock.Now()
		status, err = a.ask(ctx, spec)
		a.observeRequest(err, a.options.Clock.Since(began))
		if err != nil {
			return a.decideWithoutAnswer(err)
		}
		ttl := a.options.RefusedTTL
		if status.Allowed {
			ttl = a.options.AllowedTTL
		}
		if ttl > 0 && len(key) <= maxCachedSize {
			a.answers.Put(key, status, ttl)
		}
	}
	switch {
	case status.Denied && status.Allowed:
		return authz.Deny, status.Reason, errAllowedAndDenied
	case status.Denied:
		return authz.Deny, status.Reason, nil
	case status.Allowed:
		return authz.Allow, status.Reason, nil
	}
	return authz.NoOpinion, status.Reason, nil
}

// decideWithoutAnswer is the decision if the webhook was not called: because of
// err or, if that is nil, because the match conditions exclude the request.
func (a *Authorizer) decideWithoutAnswer(err error) (authz.Decision, string, error) {
	if err != nil && a.options.FailClosed {
		return authz.Deny, "", err
	}
	return authz.NoOpinion, "", err
}

// RulesFor implements authz.RuleResolver: the service's rules are unknown.
func (a *Authorizer) RulesFor(context.Context, *request.User, string) ([]rbacv1.PolicyRule, error) {
	return nil, authz.NoRules("webhook")
}

func (a *Authorizer) ask(ctx context.Context,
	spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	version := authorizationv1.GroupName + "/" + a.options.Version
	meta := metav1.TypeMeta{APIVersion: version, Kind: "SubjectAccessReview"}
	var question any = &authorizationv1.SubjectAccessReview{TypeMeta: meta, Spec: spec}
	if a.options.Version == "v1beta1" {
		question = &reviewV1beta1{TypeMeta: meta, Spec: specV1beta1{SubjectAccessReviewSpec: spec, Groups: spec.Groups}}
	}
	if a.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.options.Timeout)
		defer cancel()
	}
	var answer authorizationv1.SubjectAccessReview
	if err := a.service.Ask(ctx, question, &answer); err != nil {
		return answer.Status, fmt.Errorf("authorization webhook: %w", err)
	}
	if answer.APIVersion != version || answer.Kind != meta.Kind {
		return answer.Status, fmt.Errorf("authorization webhook: the answer is a %s %s instead of a %s %s",
			answer.APIVersion, answer.Kind, version, meta.Kind)
	}
	return answer.Status, nil
}

// reviewV1beta1 is the review in v1beta1, where groups are called "group".
type reviewV1beta1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              specV1beta1                               `json:"spec"`
	Status            authorizationv1.SubjectAccessReviewStatus `json:"status"`
}

type specV1beta1 struct {
	authorizationv1.SubjectAccessReviewSpec `json:",inline"`

	Hidden *struct{} `json:"groups,omitempty"` // takes precedence over the embedded one
	Groups []string  `json:"group,omitempty"`
}
