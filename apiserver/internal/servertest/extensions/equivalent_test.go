package extensions

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestRulesAboutOtherVersions: a rule about one version of a custom resource
// applies to requests in the other, converted to the first, unless it is exact.
func TestRulesAboutOtherVersions(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	k := &custom{c}
	const group = "forms.test"
	k.define(widgets(group, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[1].Subresources = d.Spec.Versions[0].Subresources
	}))
	const rules = "{matchPolicy: %s, objectSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}, " +
		"resourceRules: [{apiGroups: [" + group + "], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}]}"
	c.validatingPolicy("same", "matchConstraints: "+fmt.Sprintf(rules, "Equivalent")+
		"\nvalidations: [{expression: \"object.spec.size < 5\", messageExpression: \"object.apiVersion + ' of ' + request.requestKind.version + ' is ' + "+
		"string(object.spec.size)\"}]", "")
	c.validatingPolicy("exact", "matchConstraints: "+fmt.Sprintf(rules, "Exact")+"\nvalidations: [{expression: \"object.spec.size != 2\"}]", "")
	c.mutatingPolicy("color", applies("Object{spec: Object.spec{color: object.spec.color + 'ish'}}")+"\nmatchConstraints: "+fmt.Sprintf(rules, "Equivalent"), "")
	h.on("note", patches(`[{"op":"add","path":"/spec/note","value":"by a webhook"}]`))
	c.policiesCount(false)
	c.policiesCount(true)
	about := func(policy admissionregistrationv1.MatchPolicyType) func(w *admissionregistrationv1.MutatingWebhook) {
		return func(w *admissionregistrationv1.MutatingWebhook) {
			w.ObjectSelector, w.MatchPolicy = nil, new(policy)
			w.Rules[0].APIGroups, w.Rules[0].APIVersions = []string{group}, []string{"v1"}
		}
	}
	c.register(h, true, h.webhook("note", about(admissionregistrationv1.Equivalent)), h.webhook("only", about(admissionregistrationv1.Exact)))

	const path = "/apis/" + group + "/v2beta1/namespaces/default/widgets"
	refused := k.want(422, "POST", path, widget(group+"/v2beta1", "large", `{"size":6,"color":"red"}`))
	if !strings.HasSuffix(fmt.Sprint(refused["message"]), "denied request: "+group+"/v1 of v2beta1 is 6") {
		t.Errorf("a policy about the other version: %v", refused["message"])
	}
	h.asked("note")
	made := k.want(201, "POST", path, widget(group+"/v2beta1", "small", `{"size":2,"color":"red"}`))
	if got := fmt.Sprint(made["apiVersion"], made["spec"]); got != group+"/v2beta1map[color:redish note:by a webhook size:2]" {
		t.Error(got)
	}
	asked := h.asked("note")
	if len(asked) != 1 || len(h.asked("only")) != 0 {
		t.Fatalf("asked %v", asked)
	}
	checkForms(t, asked[0], group)
	k.want(200, "PATCH", path+"/small", `{"spec":{"size":3}}`, merge...)
	if asked = h.asked("note"); len(asked) != 1 || !strings.Contains(string(asked[0].OldObject.Raw), `"apiVersion":"`+group+`/v1"`) {
		t.Errorf("a change: %+v", asked)
	}
	h.on("note", func(*admissionv1.AdmissionReview) {})
	k.want(200, "DELETE", path+"/small", nil)
	if asked = h.asked("note"); len(asked) != 1 || !strings.Contains(string(asked[0].OldObject.Raw), `"apiVersion":"`+group+`/v1"`) {
		t.Errorf("a delete: %+v", asked)
	}
}

// checkForms checks that the webhook gets the object in its version, and is
// told the request's.
func checkForms(t *testing.T, r *admissionv1.AdmissionRequest, group string) {
	t.Helper()
	if r.Kind.Version != "v1" || r.Resource.Version != "v1" || r.RequestKind.Version != "v2beta1" || r.RequestResource.Version != "v2beta1" ||
		!strings.Contains(string(r.Object.Raw), `"apiVersion":"`+group+`/v1"`) {
		t.Errorf("%+v %s", r, r.Object.Raw)
	}
}
