package abac

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// Authorizer is the ABAC authorization mode.
type Authorizer struct{ policies []spec }

// Authorize implements authz.Authorizer. It never denies, because policies
// only ever add rights.
func (a *Authorizer) Authorize(_ context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	for i := range a.policies {
		if p := &a.policies[i]; p.appliesTo(at.User) && p.allows(at) {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "No policy matched.", nil
}

// appliesTo reports whether a policy applies to a user: one that names both a user
// and a group applies to that user while in that group, one that names neither
// applies to no one.
func (p *spec) appliesTo(user *request.User) bool {
	if user == nil || p.User == "" && p.Group == "" {
		return false
	}
	return (p.User == "" || p.User == user.Username) && (p.Group == "" || slices.Contains(user.Groups, p.Group))
}

var readVerbs = []string{"get", "list", "watch"}

func (p *spec) allows(at *authz.Attributes) bool {
	if !at.Resource {
		return (!p.Readonly || at.Verb == "get") && p.allowsPath(at.Path)
	}
	return (!p.Readonly || slices.Contains(readVerbs, at.Verb)) &&
		matches(p.Namespace, at.Namespace) && matches(p.Resource, at.ResourceName) && matches(p.APIGroup, at.APIGroup)
}

func matches(pattern, value string) bool { return pattern == wildcard || pattern == value }

func (p *spec) allowsPath(path string) bool {
	if prefix, ok := strings.CutSuffix(p.NonResourcePath, wildcard); ok {
		return strings.HasPrefix(path, prefix)
	}
	return p.NonResourcePath != "" && p.NonResourcePath == path
}

// RulesFor implements authz.RuleResolver.
func (a *Authorizer) RulesFor(_ context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for i := range a.policies {
		p := &a.policies[i]
		if !p.appliesTo(user) {
			continue
		}
		if p.Resource != "" && matches(p.Namespace, namespace) {
			rules = append(rules, rbacv1.PolicyRule{Verbs: p.verbs(readVerbs), APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			rules = append(rules, rbacv1.PolicyRule{Verbs: p.verbs([]string{"get"}), NonResourceURLs: []string{p.NonResourcePath}})
		}
	}
	return rules, nil
}

func (p *spec) verbs(readonly []string) []string {
	if p.Readonly {
		return readonly
	}
	return []string{wildcard}
}
