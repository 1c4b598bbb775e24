package authz

import (
	"context"
	"errors"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
)

// RuleResolver lists what a user may do in a namespace, as far as an authorizer
// can; an error says that the list is incomplete.
type RuleResolver interface {
	RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error)
}

// RulesFor implements RuleResolver: the rules of every authorizer that can list
// them, and the failures of those that could not.
func (u Union) RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	var all []rbacv1.PolicyRule
	var failures rulesErrors
	for _, authorizer := range u {
		resolver, ok := authorizer.(RuleResolver)
		if !ok {
			continue
		}
		rules, err := resolver.RulesFor(ctx, user, namespace)
		if err != nil {
			failures = append(failures, err)
		}
		all = append(all, rules...)
	}
	if len(failures) > 0 {
		return all, failures
	}
	return all, nil
}

// Rules turns RulesFor's result into the answer to a SelfSubjectRulesReview.
func (u Union) Rules(ctx context.Context, user *request.User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	rules, err := u.RulesFor(ctx, user, namespace)
	if err != nil {
		status.Incomplete = errors.As(err, new(noRulesError))
		status.EvaluationError = err.Error()
	}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
				Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs,
			})
		}
	}
	return status
}

// rulesErrors are the failures of several authorizers, printed in one line.
type rulesErrors []error

func (f rulesErrors) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, ", ")
}

func (f rulesErrors) Unwrap() []error { return f }

// RulesFor implements RuleResolver.
func (a Always) RulesFor(context.Context, *request.User, string) ([]rbacv1.PolicyRule, error) {
	if Decision(a) != Allow {
		return nil, nil
	}
	everything := []string{"*"}
	return []rbacv1.PolicyRule{
		{Verbs: everything, APIGroups: everything, Resources: everything},
		{Verbs: everything, NonResourceURLs: everything},
	}, nil
}

// NoRules is the error of an authorizer that can't list its rules.
func NoRules(name string) error { return noRulesError(name) }

type noRulesError string

func (n noRulesError) Error() string {
	return string(n) + " authorizer does not support user rule resolution"
}
