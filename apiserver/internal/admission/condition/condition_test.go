package condition

import (
	"context"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

func compiler(t *testing.T, o Options) *Compiler {
	t.Helper()
	if o.Origin == "" {
		o.Origin = celexpression.New
	}
	c, err := NewCompiler(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// masters allows system:masters everything.
type masters struct{}

func (masters) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	return authz.Masters{}.Authorize(ctx, a)
}

func subject(t *testing.T) *Subject {
	t.Helper()
	pod := &core.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: map[string]string{"app": "web"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
	}
	a := &admission.Attributes{
		Operation: admission.Create, Resource: core.Pods, Namespace: "shop", Name: "web", Object: pod, DryRun: true,
		Options: &metav1.CreateOptions{FieldManager: "me"},
		User:    &request.User{Username: "jane", Groups: []string{"dev", core.GroupMasters}},
	}
	namespace := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}}
	s, err := subjectInput{
		attributes: a, target: match.Target{Resource: core.Pods}, form: &Form{Object: pod}, namespace: namespace, authorizer: masters{},
	}.subject()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSubject(t *testing.T) {
	c, s := compiler(t, Options{Params: true}), subject(t)
	s = s.WithParams(map[string]any{"data": map[string]any{"max": "3"}})
	for _, text := range []string{
		"object.metadata.name == 'web' && object.spec.containers.size() == 1",
		"oldObject == null",
		"request.operation == 'CREATE' && request.kind.kind == 'Pod' && request.resource.resource == 'pods' && request.dryRun",
		"request.name == 'web' && request.namespace == 'shop' && !has(request.subResource)",
		"request.userInfo.username == 'jane' && 'dev' in request.userInfo.groups",
		"request.options.fieldManager == 'me'",
		"namespaceObject.metadata.labels['team'] == 'a'",
		"authorizer.requestResource.check('get').allowed()",
		"authorizer.group('').resource('pods').namespace('shop').check('delete').allowed()",
		"int(params.data.max) == 3",
		"quantity('1Gi').isGreaterThan(quantity('1Mi')) && ip('10.0.0.1').family() == 4 && isURL('https://a')",
	} {
		program, compileErr := c.Compile(text, cel.BoolType)
		if compileErr != nil {
			t.Errorf("%s: %v", text, compileErr)
			continue
		}
		value, err := program.Evaluate(t.Context(), s.variables, celexpression.NewBudget(celconfig.PerCallLimit))
		if err != nil || value.Value() != true {
			t.Errorf("%s: %v %v", text, value, err)
		}
	}
}

func TestCompilerRefuses(t *testing.T) {
	c := compiler(t, Options{Variables: true, Mutations: true})
	if _, err := c.Declare("count", "1"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"params.x":             "undeclared reference to 'params'",
		"variables.later":      "undefined field 'later'",
		"variables.count":      "",
		"request.uid":          "undefined field 'uid'",
		"request.userInfo.foo": "undefined field 'foo'",
		"namespaceObject.metadata.ownerReferences": "undefined field 'ownerReferences'",
		"Object{}": "undeclared reference to 'Object'",
	} {
		_, err := c.Compile(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Detail, want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"Object{spec: Object.spec{replicas: variables.count}}": "",
		"Object.spec{}": "must evaluate to Object but got Object.spec",
		"1":             "must evaluate to Object but got int",
	} {
		_, err := c.CompileMutation(text, ObjectType)
		if got := detailOf(err); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	_, err := c.CompileMutation("[1]", PatchesType)
	if got := detailOf(err); got != "must evaluate to list(JSONPatch) but got list(int)" {
		t.Errorf("%q", got)
	}
}

func TestVariablesAreLazy(t *testing.T) {
	c, s := compiler(t, Options{Variables: true}), subject(t)
	var variables []Variable
	for _, v := range [][2]string{{"bad", "object.nope"}, {"name", "object.metadata.name"}, {"twice", "variables.name + variables.name"}} {
		variables = append(variables, c.Variable(v[0], v[1]))
	}
	budget := celexpression.NewBudget(celconfig.PerCallLimit)
	with := s.WithVariables(t.Context(), variables, budget)
	if budget.Left() != celconfig.PerCallLimit {
		t.Error("variables are evaluated before they are used")
	}
	for text, want := range map[string]string{
		"variables.twice == 'webweb' && variables.name == 'web'": "",
		"variables.bad == 1": `composited variable "bad" fails to evaluate: no such key: nope`,
	} {
		program, compileErr := c.Compile(text, cel.BoolType)
		if compileErr != nil {
			t.Fatal(compileErr)
		}
		value, err := program.Evaluate(t.Context(), with.variables, celexpression.NewBudget(celconfig.PerCallLimit))
		if want == "" && (err != nil || value.Value() != true) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v %v", text, value, err)
		}
	}
}

func TestConditions(t *testing.T) {
	c, s := compiler(t, Options{}), subject(t)
	for name, want := range map[string]struct {
		texts   []string
		matches bool
		failed  string
		err     string
	}{
		"none":              {nil, true, "", ""},
		"all true":          {[]string{"true", "object.metadata.name == 'web'"}, true, "", ""},
		"one false":         {[]string{"true", "false"}, false, "c1", ""},
		"an error":          {[]string{"object.nope == 1", "true"}, false, "", "expression 'object.nope == 1' resulted in error: no such key: nope"},
		"false after error": {[]string{"object.nope == 1", "false"}, false, "c1", ""},
		"not compiled":      {[]string{"nobody"}, false, "", "expression 'nobody' resulted in error: "},
	} {
		var conditions []admissionregistrationv1.MatchCondition
		for i, text := range want.texts {
			conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: "c" + string(rune('0'+i)), Expression: text})
		}
		matches, failed, err := Compile(conditions, c).Match(t.Context(), s)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if matches != want.matches || failed != want.failed || !strings.HasPrefix(got, want.err) || want.err == "" && got != "" {
			t.Errorf("%s: %v %q %v", name, matches, failed, err)
		}
	}
}

func detailOf(err *apiservercel.Error) string {
	if err == nil {
		return ""
	}
	return err.Detail
}
