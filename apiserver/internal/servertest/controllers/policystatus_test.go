package controllers

import (
	"context"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/admissionregistration"
	"kctl/proto/rest"
)

func policy(name string, groups, versions, resources []string,
	validations ...admissionregistrationv1.Validation) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"CREATE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: groups, APIVersions: versions, Resources: resources},
				},
			}}},
			Validations: validations,
		},
	}
}

func says(expressions ...string) []admissionregistrationv1.Validation {
	var out []admissionregistrationv1.Validation
	for _, e := range expressions {
		out = append(out, admissionregistrationv1.Validation{Expression: e})
	}
	return out
}

// checked waits until a policy's status is of its generation.
func (c *cluster) checked(policies rest.Resource, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	c.T.Helper()
	var p admissionregistrationv1.ValidatingAdmissionPolicy
	c.Until("the check of "+name, func(ctx context.Context) bool {
		p = admissionregistrationv1.ValidatingAdmissionPolicy{}
		return policies.Get(ctx, name, &p) == nil && p.Status.ObservedGeneration == p.Generation
	})
	return &p
}

// The warnings are those of kube-controller-manager v1.37.2, but for the numbers that it adds to
// the names of types.
func TestTypesOfPolicies(t *testing.T) {
	t.Parallel()
	c := start(t)
	policies := c.Root().Resource(admissionregistration.ValidatingPolicyResource, "")
	v1 := []string{"v1"}
	warned := policy("warned", []string{"apps", ""}, v1, []string{"deployments", "pods", "pods/status", "nothing"}, says(
		"object.spec.replicas > '1'",
		"variables.r < 5 && variables.wrong == ''",
		"params.data.x == 'y' && params.date == 1",
		"object.metadata.labels['a'] == 'b' && object.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')",
		"!has(object.spec.strategy) || object.spec.strategy.rollingUpdate.maxSurge == 1",
		"object.spec == params",
		"object == oldObject && authorizer.requestResource.check('get').allowed()",
		"variables.r == 'x' || variables.opt == 'x' || variables.images[0] == 1",
	)...)
	warned.Spec.Validations[6].MessageExpression = "'x' + object.spec.nope"
	warned.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	warned.Spec.Variables = []admissionregistrationv1.Variable{{Name: "r", Expression: "object.spec.replicas"}, {Name: "wrong", Expression: "object.nope"},
		{Name: "opt", Expression: "object.?spec"}, {Name: "images", Expression: "object.spec.template.spec.containers.map(c, c.image)"},
	}
	for _, p := range []*admissionregistrationv1.ValidatingAdmissionPolicy{
		warned, policy("any", []string{"*"}, v1, []string{"*"}, says("object.nope == 1")...),
		policy("reviews", []string{"authentication.k8s.io"}, v1, []string{"tokenreviews"}, says("object.status.user.extra['a'][0] == 1")...),
		policy("definitions", []string{"apiextensions.k8s.io"}, v1, []string{"customresourcedefinitions"},
			says("object.spec.versions.all(v, v.schema.openAPIV3Schema.properties['a'].properties['b'].type == 'x')")...),
	} {
		c.Must(policies.Create(t.Context(), p, nil))
	}
	for name, want := range map[string][]admissionregistrationv1.ExpressionWarning{
		"any": nil,
		"reviews": {{FieldRef: "spec.validations[0].expression", Warning: "authentication.k8s.io/v1, Kind=TokenReview: ERROR: <input>:1:34: " +
			"found no matching overload for '_==_' applied to '(string, int)'\n | object.status.user.extra['a'][0] == 1\n | .................................^\n"}},
		"definitions": {{FieldRef: "spec.validations[0].expression", Warning: "apiextensions.k8s.io/v1, Kind=CustomResourceDefinition: ERROR: <input>:1:69: " +
			"undefined field 'properties'\n | object.spec.versions.all(v, v.schema.openAPIV3Schema.properties['a'].properties['b'].type == 'x')\n | " +
			"....................................................................^\n"}},
		"warned": {
			{
				FieldRef: "spec.validations[0].expression",
				Warning: "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > '1'\n | ...........^\n\n" +
					"apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > " +
					"'1'\n | .....................^\n",
			},
			{
				FieldRef: "spec.validations[2].expression",
				Warning: "/v1, Kind=Pod: ERROR: <input>:1:31: undefined field 'date'\n | params.data.x == 'y' && params.date == 1\n | ..............................^\n\n" +
					"apps/v1, Kind=Deployment: ERROR: <input>:1:31: undefined field 'date'\n | params.data.x == 'y' && params.date == 1\n | " +
					"..............................^\n",
			},
			{FieldRef: "spec.validations[4].expression", Warning: "/v1, Kind=Pod: ERROR: <input>:1:5: undefined field 'strategy'\n" +
				" | !has(object.spec.strategy) || object.spec.strategy.rollingUpdate.maxSurge == 1\n | ....^\nERROR: <input>:1:42: undefined field 'strategy'\n" +
				" | !has(object.spec.strategy) || object.spec.strategy.rollingUpdate.maxSurge == 1\n | .........................................^\n"},
			{
				FieldRef: "spec.validations[5].expression",
				Warning: "/v1, Kind=Pod: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(Pod.spec, params.ConfigMap)'\n | object.spec == " +
					"params\n | ............^\n\n" +
					"apps/v1, Kind=Deployment: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(Deployment.spec, params.ConfigMap)'\n | object.spec " +
					"== params\n | ............^\n",
			},
			{
				FieldRef: "spec.validations[6].messageExpression",
				Warning: "/v1, Kind=Pod: ERROR: <input>:1:18: undefined field 'nope'\n | 'x' + object.spec.nope\n | .................^\n\n" +
					"apps/v1, Kind=Deployment: ERROR: <input>:1:18: undefined field 'nope'\n | 'x' + object.spec.nope\n | .................^\n",
			},
			{
				FieldRef: "spec.validations[7].expression",
				Warning: "apps/v1, Kind=Deployment: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'\n" +
					" | variables.r == 'x' || variables.opt == 'x' || variables.images[0] == 1\n | ............^\nERROR: <input>:1:67: found no matching overload for " +
					"'_==_' applied to '(string, int)'\n" +
					" | variables.r == 'x' || variables.opt == 'x' || variables.images[0] == 1\n | ..................................................................^\n",
			},
		},
	} {
		p := c.checked(policies, name)
		if p.Status.TypeChecking == nil {
			t.Errorf("%s: no types are checked", name)
			continue
		}
		for i, got := range p.Status.TypeChecking.ExpressionWarnings {
			if !slices.Contains(want, got) {
				t.Errorf("%s: warning %d is\n%s: %s", name, i, got.FieldRef, got.Warning)
			}
		}
		if len(p.Status.TypeChecking.ExpressionWarnings) != len(want) {
			t.Errorf("%s: %d warnings, want %d", name, len(p.Status.TypeChecking.ExpressionWarnings), len(want))
		}
	}
	p := c.checked(policies, "warned")
	if got, want := managersOf(p), `kctl Update "" f:spec, validatingadmissionpolicy-status Apply "status" f:status`; got != want {
		t.Errorf("the managers are %s", got)
	}
	p.Spec.Validations = says("object.spec.containers.all(c, c.image != '')")
	p.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"pods"}
	c.Must(policies.Update(t.Context(), p.Name, p, nil))
	if p = c.checked(policies, "warned"); p.Status.TypeChecking != nil {
		t.Errorf("warnings of what is right: %v", p.Status.TypeChecking)
	}
}
