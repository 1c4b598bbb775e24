package reviews

import (
	"errors"
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/costtest"
)

// A review's label selector is asked about as that of a request would be. One that can't be
// read is left out, or what of it can't, and the answer says so.
func TestLabelSelectors(t *testing.T) {
	required := func(operator metav1.LabelSelectorOperator, values ...string) *authorizationv1.LabelSelectorAttributes {
		return &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: "app", Operator: operator, Values: values}}}
	}
	and := func(a, b *authorizationv1.LabelSelectorAttributes) *authorizationv1.LabelSelectorAttributes {
		return &authorizationv1.LabelSelectorAttributes{Requirements: append(a.Requirements, b.Requirements...)}
	}
	const (
		all  = "spec.resourceAttributes.labelSelector ignored due to parse error"
		part = "spec.resourceAttributes.labelSelector partially ignored due to parse error"
	)
	for _, c := range []struct {
		asked   *authorizationv1.LabelSelectorAttributes
		want    string
		ignored string
	}{
		{nil, "", ""},
		{&authorizationv1.LabelSelectorAttributes{RawSelector: "app=a,!b"}, "app=a,!b", ""},
		{&authorizationv1.LabelSelectorAttributes{RawSelector: "=="}, "", all},
		{required(metav1.LabelSelectorOpNotIn, "a", "b"), "app notin (a,b)", ""},
		{required("near", "a"), "", all},
		{and(required("near", "a"), required(metav1.LabelSelectorOpExists)), "app", part},
	} {
		spec := &authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{LabelSelector: c.asked}}
		at, errs := attributesOf(spec)
		ignored := ""
		if err := errors.Join(errs...); err != nil {
			ignored = err.Error()
		}
		if at.LabelSelector != c.want || ignored != c.ignored {
			t.Errorf("%v: %q, %q", c.asked, at.LabelSelector, ignored)
		}
	}
}

// The cost of a selector grows with its length, and not with the square of it: everybody may
// ask for a review, and one of 20,000 requirements kept a processor busy for 17 seconds.
func TestThousandsOfRequirements(t *testing.T) {
	costtest.NotSquare(t, 2000, func(requirements int) func() {
		asked := &authorizationv1.LabelSelectorAttributes{}
		for i := range requirements {
			asked.Requirements = append(asked.Requirements, metav1.LabelSelectorRequirement{Key: "k" + strconv.Itoa(i), Operator: metav1.LabelSelectorOpExists})
		}
		return func() {
			if _, err := labelSelectorText(asked); err != nil {
				t.Fatal(err)
			}
		}
	})
}
