package webhook

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"kctl/apiserver/internal/authz"
)

// specOf returns a decision's attributes as the spec of a review.
func specOf(a *authz.Attributes) authorizationv1.SubjectAccessReviewSpec {
	var spec authorizationv1.SubjectAccessReviewSpec
	if u := a.User; u != nil {
		spec.User, spec.UID, spec.Groups = u.Username, u.UID, u.Groups
		for key, values := range u.Extra {
			if spec.Extra == nil {
				spec.Extra = map[string]authorizationv1.ExtraValue{}
			}
			spec.Extra[key] = authorizationv1.ExtraValue(values)
		}
	}
	if !a.Resource {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: a.Namespace, Verb: a.Verb, Group: a.APIGroup, Version: a.APIVersion,
		Resource: a.ResourceName, Subresource: a.Subresource, Name: a.Name,
		FieldSelector: fieldsOf(a.Fields),
	}
	return spec
}

func fieldsOf(selector fields.Selector) *authorizationv1.FieldSelectorAttributes {
	if selector == nil || selector.Empty() {
		return nil
	}
	out := &authorizationv1.FieldSelectorAttributes{}
	for _, r := range selector.Requirements() {
		operator := metav1.FieldSelectorOpIn
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
		case selection.NotEquals, selection.NotIn:
			operator = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		out.Requirements = append(out.Requirements, metav1.FieldSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	return out
}
