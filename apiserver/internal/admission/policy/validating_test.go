package policy

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/match"
	"kctl/proto/core"
)

// validate evaluates a policy, with a binding that denies, for a new config map.
func validate(t *testing.T, spec admissionregistrationv1.ValidatingAdmissionPolicySpec, versions match.Versions, data map[string]string) error {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "p"}
	known := []boundPolicy{{
		ofValidating(&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec}),
		[]*binding{ofValidatingBinding(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "p", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})},
	}}
	follower := &Follower{synced: make(chan struct{})}
	close(follower.synced)
	follower.bound.Store(&known)
	plugin := NewValidating(follower, Options{Surroundings: condition.Surroundings{
		Cluster: match.Cluster{Versions: versions, Namespace: func(context.Context, string) (*core.Namespace, error) { return &core.Namespace{}, nil }},
		Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{},
	}})
	return plugin.Validate(t.Context(), &admission.Attributes{
		Operation: admission.Create, Resource: core.ConfigMaps, Namespace: "default", Name: "m",
		Object: &core.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: data},
	})
}

// Audit annotations have a cost budget of their own: what validations cost leaves no less
// for them.
func TestAnnotationsHaveABudgetOfTheirOwn(t *testing.T) {
	// One costs more than a twentieth of the budget, and takes little time.
	expensive := func(i int) string {
		return "object.data.text.contains('" + strconv.Itoa(i) + strings.Repeat("y", 1000) + "')"
	}
	var spec admissionregistrationv1.ValidatingAdmissionPolicySpec
	for i := range 6 {
		spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{Expression: "!" + expensive(i)})
		spec.AuditAnnotations = append(spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{
			Key: "k" + strconv.Itoa(i), ValueExpression: expensive(i) + " ? 'a' : 'b'",
		})
	}
	data := map[string]string{"text": strings.Repeat("x", 90_000)}
	if err := validate(t, spec, nil, data); err != nil {
		t.Errorf("%.300v", err)
	}
	spec.Validations = append(spec.Validations, spec.Validations...)
	if err := validate(t, spec, nil, data); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("twice as many validations: %.300v", err)
	}
}

// stuck has another version of every resource, and can't convert to it.
type stuck struct{}

func (stuck) Equivalent(r core.Resource) []core.Resource {
	r.Version = "v2"
	return []core.Resource{r}
}

func (stuck) Convert(context.Context, core.Object, core.Resource) (core.Object, error) {
	return nil, errors.New("the conversion webhook is away")
}

// An object that can't be converted to the version that a policy asks for is for the
// policy's failurePolicy to decide.
func TestObjectsThatCannotBeConverted(t *testing.T) {
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v2"}, Resources: []string{"configmaps"}},
	}}
	for failure, want := range map[admissionregistrationv1.FailurePolicyType]string{
		admissionregistrationv1.Ignore: "",
		admissionregistrationv1.Fail:   `ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed to configure binding: failed to convert object version: `,
	} {
		err := validate(t, admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &failure,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "true"}},
		}, stuck{}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", failure, err)
		}
	}
}

// The audit log is not filled by policies that many objects violate.
func TestFailuresInTheAudit(t *testing.T) {
	o := &outcome{}
	q := &evaluation{policy: &policy{}, binding: &binding{actions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}}}
	for range 60 {
		o.addDecision(t.Context(), q, decision{})
	}
	if len(o.failures) != 50 {
		t.Errorf("%d failures are recorded", len(o.failures))
	}
}
