package admissionregistration

import (
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// Rules about reviews have no effect, as with kube-apiserver 1.37, and the
// warning says so in its words.
func TestWarningsOfRules(t *testing.T) {
	s := MutatingWebhooks(clock.RealClock{})
	about := func(groups, resources string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
			APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","),
		}}
	}
	obj := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{
		{Rules: []admissionregistrationv1.RuleWithOperations{about("apps", "deployments")}},
		{Rules: []admissionregistrationv1.RuleWithOperations{
			about("*", "tokenreviews"), about("authentication.k8s.io", "*"),
			about("apps,authentication.k8s.io,authorization.k8s.io", "tokenreviews,subjectaccessreviews,tokenreviews"),
		}},
	}}
	want := []string{
		"webhooks[1].rules[2]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect",
		"webhooks[1].rules[2]: subjectaccessreviews.authorization.k8s.io is excluded from admission webhooks; this rule will have no effect",
	}
	if got := s.Create.Warnings(t.Context(), obj); !reflect.DeepEqual(got, want) {
		t.Errorf("created: %q", got)
	}
	if got := s.Update.Warnings(t.Context(), obj, obj); !reflect.DeepEqual(got, want) {
		t.Errorf("updated: %q", got)
	}
}

// Names of configurations in files can't be given to objects; one that has such
// a name may be changed.
func TestReservedNames(t *testing.T) {
	s := ValidatingBindings(clock.RealClock{})
	for name, want := range map[string]int{"a.static.k8s.io": 1, "static.k8s.io": 0, "a": 0} {
		obj := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "p", ValidationActions: []admissionregistrationv1.ValidationAction{"Deny"},
			},
		}
		if errs := s.Create.Validate(t.Context(), obj); len(errs) != want {
			t.Errorf("%s created: %v", name, errs)
		}
		if errs := s.Update.Validate(t.Context(), obj, obj); len(errs) != 0 {
			t.Errorf("%s updated: %v", name, errs)
		}
		if got := s.Update.Warnings(t.Context(), obj, obj); len(got) != want {
			t.Errorf("%s: warnings %q", name, got)
		}
	}
}
