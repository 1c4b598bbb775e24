package extensions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

var (
	validatingPolicies = core.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Name: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy",
	}
	validatingBindings = core.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Name: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding",
	}
	mutatingPolicies = core.Resource{Group: "admissionregistration.k8s.io", Version: "v1", Name: "mutatingadmissionpolicies", Kind: "MutatingAdmissionPolicy"}
	mutatingBindings = core.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Name: "mutatingadmissionpolicybindings", Kind: "MutatingAdmissionPolicyBinding",
	}
)

// about matches the objects of a test: config maps and others with the label
// hook=name.
func about(name string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hook": name}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"*"}, APIVersions: []string{"v1"}, Resources: []string{"configmaps", "pods", "clusterroles", "namespaces"},
			},
		}}},
	}
}

// validatingPolicy stores a policy and a binding with the same name. Both are
// YAML.
func (c *cluster) validatingPolicy(name, spec, binding string) {
	c.T.Helper()
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-b"}}
	c.Must(errors.Join(yaml.UnmarshalStrict([]byte(spec), &p.Spec), yaml.UnmarshalStrict([]byte(binding), &b.Spec)))
	if p.Spec.MatchConstraints == nil {
		p.Spec.MatchConstraints = about(name)
	}
	b.Spec.PolicyName = name
	if b.Spec.ValidationActions == nil {
		b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	}
	c.Must(c.Root().Resource(validatingPolicies, "").Create(c.T.Context(), p, nil))
	c.Must(c.Root().Resource(validatingBindings, "").Create(c.T.Context(), b, nil))
}

func (c *cluster) mutatingPolicy(name, spec, binding string) {
	c.T.Helper()
	p := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-b"}}
	c.Must(errors.Join(yaml.UnmarshalStrict([]byte(spec), &p.Spec), yaml.UnmarshalStrict([]byte(binding), &b.Spec)))
	if p.Spec.MatchConstraints == nil {
		p.Spec.MatchConstraints = about(name)
	}
	b.Spec.PolicyName = name
	if p.Spec.ReinvocationPolicy == "" {
		p.Spec.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
	}
	c.Must(c.Root().Resource(mutatingPolicies, "").Create(c.T.Context(), p, nil))
	c.Must(c.Root().Resource(mutatingBindings, "").Create(c.T.Context(), b, nil))
}

// policiesCount waits until everything stored before is in use: bindings come
// in the order in which they were stored.
func (c *cluster) policiesCount(mutating bool) {
	c.T.Helper()
	if mutating {
		c.mutatingPolicy("zz-last", "mutations: [{patchType: JSONPatch, jsonPatch: {expression: \"[JSONPatch{op: 'remove', path: '/no'}]\"}}]", "")
	} else {
		c.validatingPolicy("zz-last", "validations: [{expression: 'false'}]", "")
	}
	c.Until("policies count", func(ctx context.Context) bool {
		err := c.Root().Resource(core.ConfigMaps, "default").Create(ctx, labelled("last", "zz-last"), nil, rest.Query("dryRun", "All"))
		return err != nil && strings.Contains(err.Error(), "zz-last-b")
	})
}

// told creates an object with the label, and returns the answer and the
// warnings.
func (c *cluster) told(r core.Resource, namespace string, obj, stored core.Object) (answer string, warnings []string) {
	c.T.Helper()
	err := c.Root().Resource(r, namespace).Create(c.T.Context(), obj, stored, rest.OnWarning(func(text string) { warnings = append(warnings, text) }))
	if err == nil {
		return "", warnings
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		c.T.Fatal(err)
	}
	s := status.Status()
	return fmt.Sprintf("%d %s %s", s.Code, s.Reason, s.Message), warnings
}

// validated are policies with their bindings, and the results: the answer
// begins with want, or, if that begins with a space, it is what the policy
// says.
var validated = map[string]struct{ spec, binding, want, warning string }{
	"plain": {"validations: [{expression: \" object.data.a == '2'\"}]", "", " failed expression: object.data.a == '2'", ""},
	"holds": {"validations: [{expression: \"object.data.a == '1'\"}]", "", "", ""},
	"message": {"validations: [{expression: 'false', message: must be two, reason: Forbidden}, {expression: 'false'}]", "",
		`403 Forbidden configmaps "c" is forbidden: ValidatingAdmissionPolicy 'message' with binding 'message-b' denied request: must be two`, ""},
	"large":        {"validations: [{expression: 'false', reason: RequestEntityTooLarge}]", "", `413 RequestEntityTooLarge configmaps "c" is forbidden: `, ""},
	"expressed":    {"validations: [{expression: 'false', messageExpression: \"'a is ' + object.data.a\"}]", "", " a is 1", ""},
	"inexpressed":  {"validations: [{expression: 'false', messageExpression: \"'a is ' + object.data.b\", message: m}]", "", " m", ""},
	"lines":        {"validations: [{expression: 'false', messageExpression: \"'a\\\\nb'\"}]", "", " failed expression: false", ""},
	"error":        {"validations: [{expression: \"object.data.b == '2'\"}]", "", " expression 'object.data.b == '2'' resulted in error: no such key: b", ""},
	"error-ignore": {"{failurePolicy: Ignore, validations: [{expression: \"object.data.b == '2'\"}]}", "", "", ""},
	"error-warn": {"validations: [{expression: \"object.data.b == '2'\"}]", "validationActions: [Warn]", "",
		" expression 'object.data.b == '2'' resulted in error: no such key: b"},
	"warn":  {"validations: [{expression: 'false', message: m}]", "validationActions: [Warn]", "", " m"},
	"unmet": {"{matchConditions: [{name: c, expression: 'false'}], validations: [{expression: 'false'}]}", "", "", ""},
	"unknown": {"{matchConditions: [{name: c, expression: \"object.data.z == '1'\"}, {name: d, expression: \"object.data.y == '1'\"}], " +
		"validations: [{expression: 'true'}]}", "",
		" [expression 'object.data.z == '1'' resulted in error: no such key: z, expression 'object.data.y == '1'' resulted in error: no such key: y]", ""},
	"unknown-pass": {"{failurePolicy: Ignore, matchConditions: [{name: c, expression: \"object.data.z == '1'\"}], validations: [{expression: 'false'}]}", "", "",
		""},
	"variables": {"{variables: [{name: v, expression: \"object.data.a + 'x'\"}, {name: w, expression: \"variables.v + 'y'\"}], validations: [{expression: " +
		"\"variables.w == ''\", messageExpression: variables.w}]}", "", " 1xy", ""},
	"dear": {"validations: [{expression: \"" + dear + "\"}]", "", " expression '" + dear +
		"' resulted in error: operation cancelled: actual cost limit exceeded", ""},
	"budget": {"validations: [" + strings.Repeat("{expression: \""+dear+"\"},", 11) + "{expression: 'true'}]", "",
		" validation failed due to running out of cost budget, no further validation rules will be run", ""},
	"authorizer": {"validations: [{expression: \"authorizer.requestResource.check('create').allowed() && !authorizer.serviceAccount('default', " +
		"'x').group('').resource('pods').check('get').allowed()\"}]", "", "", ""},
	"namespace": {"validations: [{expression: 'false', messageExpression: \"namespaceObject.metadata.name + ' ' + request.namespace\"}]", "", " default default",
		""},
	"annotation": {"auditAnnotations: [{key: k, valueExpression: string(object.data.z)}]", "validationActions: [Warn]",
		" expression 'string(object.data.z)' resulted in error: no such key: z", ""},
	"elsewhere": {"validations: [{expression: 'false'}]", "matchResources: {namespaceSelector: {matchLabels: {no: where}}}", "", ""},
	"excluded": {"validations: [{expression: 'false'}]",
		"matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]}", "", ""},

	"param":          {params, "paramRef: {name: p1, parameterNotFoundAction: Deny}", " p1 of default is 4", ""},
	"param-other":    {params, "paramRef: {name: p1, namespace: other, parameterNotFoundAction: Deny}", "", ""},
	"param-selected": {params, "paramRef: {selector: {matchLabels: {set: a}}, parameterNotFoundAction: Deny}", " p2 of default is 5", ""},
	"param-missing": {params, "paramRef: {name: p0, parameterNotFoundAction: Deny}",
		" failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction", ""},
	"param-missing-warn": {params, "{paramRef: {name: p0, parameterNotFoundAction: Deny}, validationActions: [Warn]}",
		" failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction", ""},
	"param-missing-fine": {params, "paramRef: {name: p0, parameterNotFoundAction: Allow}", "", ""},
	"param-ignored":      {params + "\nfailurePolicy: Ignore", "paramRef: {name: p0, parameterNotFoundAction: Deny}", "", ""},
	"param-none":         {"{paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: 'params == null'}]}", "", "", ""},
	"param-unknown": {"{paramKind: {apiVersion: x.io/v1, kind: X}, validations: [{expression: 'true'}]}", "",
		`422 Invalid configmaps "c" is forbidden: ValidatingAdmissionPolicy 'param-unknown' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'x.io/v1, Kind=X'`, ""},
	"param-cluster": {"{paramKind: {apiVersion: v1, kind: Namespace}, validations: [{expression: 'false', messageExpression: \"'it is ' " +
		"+ params.metadata.name\"}]}", "paramRef: {name: other, parameterNotFoundAction: Deny}", " it is other", ""},
	"param-cluster-in": {"{paramKind: {apiVersion: v1, kind: Namespace}, validations: [{expression: 'true'}]}",
		"paramRef: {name: other, namespace: default, parameterNotFoundAction: Deny}",
		" failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`", ""},
}

const (
	params = "paramKind: {apiVersion: v1, kind: ConfigMap}\nvalidations: [{expression: \"params.data.max == '3'\", messageExpression: \"params.metadata.name + " +
		"' of ' + params.metadata.namespace + ' is ' + params.data.max\"}]"
)

// dear costs more than a call may, and yet is done at once: comparing long texts costs much for the time it takes.
var dear = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, '" + longText + "'.contains('" + longText + "')))"

var longText = strings.Repeat("a", 2000)

// parameterMaps creates the parameters that the bindings name.
func (c *cluster) parameterMaps() {
	c.T.Helper()
	c.Namespace("other")
	for _, p := range [][4]string{{"default", "p1", "4", ""}, {"default", "p2", "5", "a"}, {"other", "p1", "3", "a"}} {
		c.Must(c.Root().Resource(core.ConfigMaps, p[0]).Create(c.T.Context(), &core.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: p[1], Labels: map[string]string{"set": p[3]}}, Data: map[string]string{"max": p[2]},
		}, nil))
	}
}

func TestValidatingPolicies(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.parameterMaps()
	for _, name := range slices.Sorted(maps.Keys(validated)) {
		c.validatingPolicy(name, validated[name].spec, validated[name].binding)
	}
	c.policiesCount(false)
	for name, want := range validated {
		obj := labelled("c", name)
		got, warnings := c.told(core.ConfigMaps, "default", obj, nil)
		if strings.HasPrefix(want.want, " ") {
			want.want = fmt.Sprintf(`422 Invalid configmaps "c" is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s-b' denied request:%s`,
				name, name, want.want)
		}
		if got == "" {
			c.Must(c.Root().Resource(core.ConfigMaps, "default").Delete(t.Context(), "c", nil, nil))
		}
		if want.want == "" && got != "" || !strings.HasPrefix(got, want.want) {
			t.Errorf("%s:\n got: %.400s\nwant: %.400s", name, got, want.want)
		}
		if want.warning != "" {
			want.warning = fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s-b':%s", name, name, want.warning)
		}
		if strings.Join(warnings, "|") != want.warning {
			t.Errorf("%s: warned of %q", name, warnings)
		}
	}
}

// TestPoliciesOnClusterScope: cluster-scoped objects, and namespaces.
func TestPoliciesOnClusterScope(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.parameterMaps()
	const ref = "paramRef: {name: p1, parameterNotFoundAction: Deny}"
	c.validatingPolicy("roles", params, ref)
	c.validatingPolicy("roles-in", params, "paramRef: {name: p1, namespace: default, parameterNotFoundAction: Deny}")
	c.validatingPolicy("spaces", "validations: [{expression: 'false', messageExpression: \"request.namespace + ' ' + string(namespaceObject == null)\"}]", "")
	c.policiesCount(false)
	role := core.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterroles", Kind: "ClusterRole"}
	for hook, want := range map[string]string{
		"roles":    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
		"roles-in": "p1 of default is 4",
	} {
		obj := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}}
		obj.Name, obj.Labels = "r", map[string]string{"hook": hook}
		if got, _ := c.told(role, "", obj, nil); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", hook, got)
		}
	}
	space := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"hook": "spaces"}}}
	if got, _ := c.told(core.Namespaces, "", space, nil); !strings.HasSuffix(got, "denied request: shop true") {
		t.Errorf("a namespace: %s", got)
	}
}

// TestPoliciesInOtherForms: a policy about one form of a resource applies to
// all.
func TestPoliciesInOtherForms(t *testing.T) {
	t.Parallel()
	c := start(t)
	const rules = "{matchPolicy: %s, resourceRules: [{apiGroups: [events.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [events]}], " +
		"objectSelector: {matchLabels: {hook: %s}}}"
	c.validatingPolicy("same", "matchConstraints: "+fmt.Sprintf(rules, "Equivalent", "same")+
		"\nvalidations: [{expression: 'false', messageExpression: \"object.apiVersion + ' ' + object.note + ' ' + request.requestKind.version\"}]", "")
	c.validatingPolicy("exact", "matchConstraints: "+fmt.Sprintf(rules, "Exact", "exact")+"\nvalidations: [{expression: 'false'}]", "")
	c.mutatingPolicy("changes", "matchConstraints: "+fmt.Sprintf(rules, "Equivalent", "changes")+
		"\nmutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{note: object.note + ' indeed'}\"}}]", "")
	c.policiesCount(false)
	c.policiesCount(true)
	event := func(hook string) *core.Event {
		e := &core.Event{ObjectMeta: metav1.ObjectMeta{Name: hook, Labels: map[string]string{"hook": hook}}, Message: "hello"}
		e.InvolvedObject = corev1.ObjectReference{Namespace: "default", Name: "x"}
		return e
	}
	if got, _ := c.told(core.Events, "default", event("same"), nil); !strings.HasSuffix(got, "denied request: events.k8s.io/v1 hello v1") {
		t.Errorf("%q", got)
	}
	if got, _ := c.told(core.Events, "default", event("exact"), nil); got != "" {
		t.Errorf("by another form: %q", got)
	}
	stored := &core.Event{}
	if got, _ := c.told(core.Events, "default", event("changes"), stored); got != "" || stored.Message != "hello indeed" {
		t.Errorf("%q %q", got, stored.Message)
	}
}

// TestPoliciesCannotKeepThemselves: a policy that refuses everything can be
// deleted, and reviews are answered.
func TestPoliciesCannotKeepThemselves(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.validatingPolicy("all", "matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]}\n"+
		"validations: [{expression: 'false'}]", "")
	ctx, root := t.Context(), c.Root()
	c.Until("it refuses", func(ctx context.Context) bool {
		return root.Resource(core.ConfigMaps, "default").Create(ctx, labelled("x", "x"), nil, rest.Query("dryRun", "All")) != nil
	})
	c.Must(root.Do(ctx, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, nil))
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	if err := root.Resource(validatingWebhooks, "").Create(ctx, hook, nil); err == nil {
		t.Error("it does not refuse webhooks")
	}
	c.Must(root.Resource(validatingBindings, "").Delete(ctx, "all-b", nil, nil))
	c.Must(root.Resource(validatingPolicies, "").Delete(ctx, "all", nil, nil))
	c.Until("nobody refuses", func(ctx context.Context) bool {
		return root.Resource(core.ConfigMaps, "default").Create(ctx, labelled("x", "x"), nil) == nil
	})
}

// TestPolicyAudit: what policies write to the audit log.
func TestPolicyAudit(t *testing.T) {
	t.Parallel()
	audited, path := servertest.StartAudited(t)
	c := &cluster{audited}
	c.validatingPolicy("p", "validations: [{expression: 'false', message: m}, {expression: 'true'}, {expression: \"object.data.z == ''\"}]\n"+
		"auditAnnotations: [{key: k, valueExpression: \"' v-' + object.data.a\"}, {key: n, valueExpression: 'null'}, {key: e, valueExpression: \"''\"}]",
		"validationActions: [Audit]")
	c.policiesCount(false)
	c.Must(c.Client(&rest.Config{BearerToken: "master", UserAgent: "policy"}).Resource(core.ConfigMaps, "default").Create(t.Context(), labelled("c", "p"), nil))
	c.Must(c.Stop())
	events := servertest.AuditEvents(t, path, "policy")
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	for key, want := range map[string]string{
		"p/k": "v-1", "p/n": "", "p/e": "",
		"validation.policy.admission.k8s.io/validation_failure": `[{"message":"m","policy":"p","binding":"p-b","expressionIndex":0,"validationActions":["Audit"]},` +
			`{"message":"expression 'object.data.z == ''' resulted in error: no such key: z","policy":"p","binding":"p-b","expressionIndex":2,"validationActions":["Audit"]}]`,
	} {
		if got := events[0].Annotations[key]; got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
}

// TestPoliciesOnCustomResources: as objects, and as parameters.
func TestPoliciesOnCustomResources(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	k := &custom{c}
	k.define(widgets("policies.test"))
	const path, rules = "/apis/policies.test/v1/namespaces/default/widgets",
		"{resourceRules: [{apiGroups: [policies.test], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}"
	k.want(201, "POST", path, widget("policies.test/v1", "limit", `{"size":5}`))
	c.validatingPolicy("size", "matchConstraints: "+rules+"\nparamKind: {apiVersion: policies.test/v1, kind: Widget}\n"+
		"validations: [{expression: object.spec.size <= params.spec.size, messageExpression: \"'no more than ' + string(params.spec.size)\"}]",
		"paramRef: {name: limit, parameterNotFoundAction: Deny}")
	c.mutatingPolicy("color", applies("Object{spec: Object.spec{color: 'blue'}}")+"\nmatchConstraints: "+rules, "")
	h.on("note", patches(`[{"op":"add","path":"/spec/note","value":"by a webhook"}]`))
	c.policiesCount(false)
	c.policiesCount(true)
	c.register(h, true, h.webhook("note", func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector, w.Rules[0].APIGroups = nil, []string{"policies.test"}
	}))
	refused := k.want(422, "POST", path, widget("policies.test/v1", "large", `{"size":6}`))
	if !strings.HasSuffix(fmt.Sprint(refused["message"]), "denied request: no more than 5") {
		t.Errorf("%v", refused)
	}
	made := k.want(201, "POST", path, widget("policies.test/v1", "small", `{"size":4}`))
	if got := fmt.Sprint(made["spec"]); got != "map[color:blue note:by a webhook size:4]" {
		t.Error(got)
	}
}
