package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

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
	for _, rule := range simpleRules(answer.Status.ResourceRules) {
		out.Add(rule.resource, "[]", bracketed(rule.names), bracketed(rule.verbs))
	}
	for _, rule := range byAddress(answer.Status.NonResourceRules) {
		out.Add("", bracketed(rule.NonResourceURLs), "[]", bracketed(rule.Verbs))
	}
	return out.Flush(a.Out)
}

func bracketed(words []string) string { return "[" + strings.Join(words, " ") + "]" }

// byAddress splits rules, one for each address, in their order.
func byAddress(rules []authorizationv1.NonResourceRule) []authorizationv1.NonResourceRule {
	var all []authorizationv1.NonResourceRule
	for _, rule := range rules {
		for _, address := range rule.NonResourceURLs {
			all = append(all, authorizationv1.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: []string{address}})
		}
	}
	// As they are written, with the brackets.
	sort.SliceStable(all, func(i, j int) bool { return bracketed(all[i].NonResourceURLs) < bracketed(all[j].NonResourceURLs) })
	return all
}

// simpleRule is what a user may do with one resource.
type simpleRule struct {
	group, resource string
	names, verbs    []string
}

// allow adds those of the verbs that were not allowed yet.
func (r *simpleRule) allow(verbs []string) {
	for _, verb := range verbs {
		if !slices.Contains(r.verbs, verb) {
			r.verbs = append(r.verbs, verb)
		}
	}
}

// simpleRules splits rules, one for each resource and set of names, with the verbs
// of all rules that allow something there.
func simpleRules(rules []authorizationv1.ResourceRule) []simpleRule {
	var all []simpleRule
	at := map[string]int{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				full := resourceName(resource, group)
				key := full + "\x00" + strings.Join(rule.ResourceNames, ",")
				i, known := at[key]
				if !known {
					i = len(all)
					at[key] = i
					all = append(all, simpleRule{group: group, resource: full, names: rule.ResourceNames})
				}
				all[i].allow(rule.Verbs)
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		return all[i].group < all[j].group || all[i].group == all[j].group && all[i].resource+"]" < all[j].resource+"]"
	})
	return all
}

// resourceName is RESOURCE.GROUP/SUBRESOURCE.
func resourceName(resource, group string) string {
	if group == "" {
		return resource
	}
	base, sub, hasSub := strings.Cut(resource, "/")
	if hasSub {
		return fmt.Sprintf("%s.%s/%s", base, group, sub)
	}
	return base + "." + group
}
