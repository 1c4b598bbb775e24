package webhook

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
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
		FieldSelector: fieldsOf(a.Fields), LabelSelector: labelsOf(a.LabelSelector),
	}
	return spec
}

// labelOperators are those of reviews. A requirement with another one is left out: without
// it, the question is about more.
var labelOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// labelsOf leaves out a selector that can't be read; the request for the list reports that.
func labelsOf(selector string) *authorizationv1.LabelSelectorAttributes {
	if selector == "" {
		return nil
	}
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return nil
	}
	out := &authorizationv1.LabelSelectorAttributes{}
	for _, r := range requirements {
		if operator, ok := labelOperators[r.Operator()]; ok {
			out.Requirements = append(out.Requirements, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.Values().List()})
		}
	}
	if len(out.Requirements) == 0 {
		return nil
	}
	return out
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
