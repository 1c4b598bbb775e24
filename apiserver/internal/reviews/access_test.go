package reviews

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A review's label selector is asked about as that of a request would be. One that can't be
// read is left out, and the answer says so.
func TestLabelSelectors(t *testing.T) {
	required := func(operator metav1.LabelSelectorOperator, values ...string) *authorizationv1.LabelSelectorAttributes {
		return &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: "app", Operator: operator, Values: values}}}
	}
	for _, c := range []struct {
		asked   *authorizationv1.LabelSelectorAttributes
		want    string
		ignored int
	}{
		{nil, "", 0},
		{&authorizationv1.LabelSelectorAttributes{RawSelector: "app=a,!b"}, "app=a,!b", 0},
		{&authorizationv1.LabelSelectorAttributes{RawSelector: "=="}, "", 1},
		{required(metav1.LabelSelectorOpNotIn, "a", "b"), "app notin (a,b)", 0},
		{required("near", "a"), "", 1},
	} {
		spec := &authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{LabelSelector: c.asked}}
		if at, ignored := attributesOf(spec); at.LabelSelector != c.want || len(ignored) != c.ignored {
			t.Errorf("%v: %q, %v", c.asked, at.LabelSelector, ignored)
		}
	}
}
