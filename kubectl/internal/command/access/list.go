package access

import (
	"context"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/kubectl/internal/printer"
)

// rulesPath is where a user learns what they may do.
const rulesPath = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

// listRules is `kctl auth can-i --list`.
func (a *canIOptions) listRules(ctx context.Context, noHeaders bool) error {
	namespace, err := a.Namespace()
	if err != nil {
		return err
	}
	client, err := a.Server()
	if err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectRulesReview"
	answer := &authorizationv1.SelfSubjectRulesReview{}
	if err := client.Do(ctx, http.MethodPost, rulesPath, review, answer); err != nil {
		return err
	}
	if answer.Status.Incomplete {
		a.Warn("the list may be incomplete: %v", answer.Status.EvaluationError)
	}
	out := &printer.Columns{}
	if !noHeaders {
		out.Add("Resources", "Non-Resource URLs", "Resource Names", "Verbs")
	}
	for _, rule := range singleRules(answer.Status) {
		resource := ""
		if len(rule.Resources) > 0 {
			resource = printer.ResourceName(rule.Resources[0], rule.APIGroups[0])
		}
		out.Add(resource, bracketed(rule.NonResourceURLs), bracketed(rule.ResourceNames), bracketed(rule.Verbs))
	}
	return out.Flush(a.Out)
}

func bracketed(words []string) string { return "[" + strings.Join(words, " ") + "]" }

// singleRules splits rules as kubectl does: one for each resource, or name of an object
// of one, with the verbs of all rules that allow something there, and one for each address
// and verb. They come in the order of their texts, in which verbs are first.
func singleRules(status authorizationv1.SubjectRulesReviewStatus) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	at := map[string]int{} // where the rule of a resource or a name is
	allow := func(rule rbacv1.PolicyRule, verbs []string) {
		key := rule.String()
		i, known := at[key]
		if !known {
			i, at[key] = len(all), len(all)
			all = append(all, rule)
		}
		for _, verb := range verbs {
			if !slices.Contains(all[i].Verbs, verb) {
				all[i].Verbs = append(all[i].Verbs, verb)
			}
		}
	}
	for _, rule := range status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				single := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}}
				if len(rule.ResourceNames) == 0 {
					allow(single, rule.Verbs)
				}
				for _, name := range rule.ResourceNames {
					single.ResourceNames = []string{name}
					allow(single, rule.Verbs)
				}
			}
		}
	}
	for _, rule := range status.NonResourceRules {
		for _, address := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				all = append(all, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{address}})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b rbacv1.PolicyRule) int { return strings.Compare(a.String(), b.String()) })
	return all
}
