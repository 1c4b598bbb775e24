package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/field"
)

// StaticSuffix ends the names of what a kube-apiserver reads from files (KEP-5793),
// which could not be told apart from objects of the API with such names.
const StaticSuffix = ".static.k8s.io"

const reservedName = `names ending with "` + StaticSuffix +
	`" are reserved for static manifest-based configurations and cannot be managed via the API`

func validateNotReserved(name string) field.ErrorList {
	if !strings.HasSuffix(name, StaticSuffix) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, reservedName)}
}

// warnOfReserved is for objects that have such a name already.
func warnOfReserved(name string) []string {
	if !strings.HasSuffix(name, StaticSuffix) {
		return nil
	}
	return []string{"metadata.name: " + reservedName}
}

// warnOfRules names the resources in webhooks' rules for which these have no
// effect.
func warnOfRules(webhooks []webhook) []string {
	var out []string
	for i, w := range webhooks {
		at := field.NewPath("webhooks").Index(i).Child("rules")
		for j := range w.Rules {
			for _, named := range unaskedIn(&w.Rules[j].Rule) {
				out = append(out, fmt.Sprintf("%s: %s is excluded from admission webhooks; this rule will have no effect", at.Index(j), named))
			}
		}
	}
	return out
}

// unaskedIn are the resources that a rule names and about which webhooks are never
// asked, in its order and once each. A rule for all groups or resources is meant
// for others.
func unaskedIn(rule *admissionregistrationv1.Rule) []schema.GroupResource {
	if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.Resources, "*") {
		return nil
	}
	var out []schema.GroupResource
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			named := schema.GroupResource{Group: group, Resource: resource}
			if match.NeverMatched.Has(named) && !slices.Contains(out, named) {
				out = append(out, named)
			}
		}
	}
	return out
}
