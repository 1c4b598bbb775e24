package celexpression

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

func testEnvironment(t *testing.T) *cel.Env {
	t.Helper()
	set, err := Environment(nil, cel.Variable("object", cel.DynType), cel.Variable("authorizer", library.AuthorizerType))
	if err != nil {
		t.Fatal(err)
	}
	env, err := set.Env(New)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestCompileRefuses(t *testing.T) {
	env := testEnvironment(t)
	for text, c := range map[string]struct {
		returns []*cel.Type
		want    string
	}{
		"object.ok":         {[]*cel.Type{cel.BoolType}, "must evaluate to bool but got dyn"},
		"object.ok == true": {[]*cel.Type{cel.BoolType}, ""},
		"null":              {[]*cel.Type{cel.StringType, cel.NullType}, ""},
		"1":                 {[]*cel.Type{cel.BoolType}, "must evaluate to bool but got int"},
		"2":                 {[]*cel.Type{cel.StringType, cel.NullType}, "must evaluate to one of [string null_type] but got int"},
		"nobody":            {nil, "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nobody' (in container '')\n | nobody\n | ^"},
		strings.Repeat("(", 1000) + strings.Repeat(")", 1000): {nil, "compilation failed: ERROR: "},
		strings.Repeat(" ", 3<<20) + "1":                      {nil, "compilation failed: an expression has no more than 3145728 bytes"},
	} {
		_, err := Compile(env, text, c.returns...)
		got := ""
		if err != nil {
			got = err.Detail
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%.40s:\n  got: %.200s\n want: %s", text, got, c.want)
		}
	}
}

func TestEvaluateIsBounded(t *testing.T) {
	env := testEnvironment(t)
	list := make([]any, 2000)
	for i := range list {
		list[i] = int64(i)
	}
	text := strings.Repeat("a", 3<<20)
	variables := map[string]any{"object": map[string]any{"list": list, "text": text}, "authorizer": types.NullValue}
	cheap, err := Compile(env, "object.list.size() == 2000")
	if err != nil {
		t.Fatal(err)
	}
	// Expensive by its cost, and not by the time that it takes with the race
	// detector.
	dear, err := Compile(env, "object.text.matches('(a|b)*(a|b)*(a|b)*(a|b)*(a|b)*(a|b)*')")
	if err != nil {
		t.Fatal(err)
	}
	budget := NewBudget(celconfig.RuntimeCELCostBudget)
	if value, err := cheap.Evaluate(t.Context(), variables, budget); err != nil || value != types.True || budget.Left() >= celconfig.RuntimeCELCostBudget {
		t.Errorf("%v, %v, %d left", value, err, budget.Left())
	}
	if _, err := dear.Evaluate(t.Context(), variables, budget); !errors.Is(err, ErrCallLimit) {
		t.Errorf("a dear expression: %v", err)
	}
	if budget.Left() > celconfig.RuntimeCELCostBudget-celconfig.PerCallLimit {
		t.Errorf("a call that cost too much left %d", budget.Left())
	}
	if _, err := cheap.Evaluate(t.Context(), variables, NewBudget(1)); !errors.Is(err, ErrBudget) {
		t.Errorf("beyond the budget: %v", err)
	}
	long, err := Compile(env, "object.list.all(a, object.list.all(b, a + b >= 0))")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := long.Evaluate(ctx, variables, NewBudget(celconfig.RuntimeCELCostBudget)); err == nil || errors.Is(err, ErrCallLimit) {
		t.Errorf("in a request that has ended: %v", err)
	}
}

// reader allows jane to get one config map.
type reader struct{ asked *authz.Attributes }

func (r *reader) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	r.asked = a
	if a.User.Username == "jane" && a.Verb == "get" && a.ResourceName == "configmaps" && a.Name == "shop" {
		return authz.Allow, "she reads it", nil
	}
	return authz.NoOpinion, "", nil
}

func TestAuthorizer(t *testing.T) {
	env := testEnvironment(t)
	for text, want := range map[string]bool{
		"authorizer.group('').resource('configmaps').namespace('n').name('shop').check('get').allowed()":                                true,
		"authorizer.group('').resource('configmaps').namespace('n').name('shop').check('get').reason() == 'she reads it'":               true,
		"authorizer.group('').resource('configmaps').namespace('n').name('shop').check('update').allowed()":                             false,
		"authorizer.path('/healthz').check('get').allowed()":                                                                            false,
		"authorizer.serviceAccount('a', 'b').group('').resource('configmaps').name('shop').check('get').allowed()":                      false,
		"authorizer.group('').resource('pods').fieldSelector('spec.nodeName=n1,status.phase!=Failed').check('list').allowed() == false": true,
		"authorizer.group('').resource('pods').labelSelector('app in (a,b),!out').check('list').allowed() == false":                     true,
	} {
		program, compileErr := Compile(env, text, cel.BoolType)
		if compileErr != nil {
			t.Fatal(compileErr)
		}
		by := &reader{}
		who := &request.User{Username: "jane", Groups: []string{"dev"}}
		got, err := program.Evaluate(t.Context(), map[string]any{"object": nil, "authorizer": Authorizer(who, by)}, NewBudget(celconfig.PerCallLimit))
		if err != nil || got != types.Bool(want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
		if strings.Contains(text, "fieldSelector") && (by.asked.Fields == nil || by.asked.Fields.String() != "spec.nodeName=n1,status.phase!=Failed") {
			t.Errorf("asked for %v", by.asked.Fields)
		}
		if strings.Contains(text, "labelSelector") && by.asked.LabelSelector != "app in (a,b),!out" {
			t.Errorf("asked for %q", by.asked.LabelSelector)
		}
	}
}
