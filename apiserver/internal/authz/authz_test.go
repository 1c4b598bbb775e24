package authz

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
)

type answer struct {
	decision Decision
	reason   string
	err      error
}

func (a answer) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return a.decision, a.reason, a.err
}

func TestUnion(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		union    Union
		decision Decision
		reason   string
		failed   bool
	}{
		"nobody":        {Union{}, NoOpinion, "", false},
		"first allows":  {Union{answer{Allow, "a", nil}, answer{Deny, "b", nil}}, Allow, "a", false},
		"first denies":  {Union{answer{Deny, "a", nil}, answer{Allow, "b", nil}}, Deny, "a", false},
		"second allows": {Union{answer{NoOpinion, "a", broken}, answer{Allow, "b", nil}}, Allow, "b", false},
		"nobody knows":  {Union{answer{NoOpinion, "a", nil}, answer{NoOpinion, "b", nil}}, NoOpinion, "a\nb", false},
		"who does not know": {Union{Named{"a", answer{NoOpinion, "x", nil}}, Named{"b", answer{NoOpinion, "", nil}}, Named{"c", answer{NoOpinion, "y", nil}}},
			NoOpinion, "a: x\nc: y", false},
		"who decides":       {Union{Named{"a", answer{Deny, "x", nil}}}, Deny, "x", false},
		"nobody could know": {Union{answer{NoOpinion, "", broken}, Always(Deny)}, NoOpinion, "Everything is forbidden.", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision, reason, err := test.union.Authorize(t.Context(), &Attributes{})
			if decision != test.decision || reason != test.reason || (err != nil) != test.failed {
				t.Errorf("got %v %q %v", decision, reason, err)
			}
		})
	}
}

// listing is an authorizer that can't list its rules, or only a part of them.
type listing struct{ err error }

func (listing) Authorize(context.Context, *Attributes) (Decision, string, error) {
	return NoOpinion, "", nil
}

func (l listing) RulesFor(context.Context, *request.User, string) ([]rbacv1.PolicyRule, error) {
	return nil, l.err
}

// TestRules: a list is incomplete if an authorizer can't list its rules, but
// not if one of the rules refers to a missing role.
func TestRules(t *testing.T) {
	none, missing := Named{"w", listing{NoRules("webhook")}}, Named{"r", listing{errors.New("role not found")}}
	inner := &Exchangeable{}
	inner.Put(Union{missing, none})
	for _, test := range []struct {
		union      Union
		incomplete bool
		says       string
	}{
		{Union{missing}, false, "role not found"},
		{Union{none, missing}, true, "webhook authorizer does not support user rule resolution, role not found"},
		{Union{inner}, true, "role not found, webhook authorizer does not support user rule resolution"},
	} {
		status := test.union.Rules(t.Context(), nil, "")
		if status.Incomplete != test.incomplete || status.EvaluationError != test.says {
			t.Errorf("%+v, want %v %q", status, test.incomplete, test.says)
		}
	}
}

func TestZeroDecisionDenies(t *testing.T) {
	var d Decision
	if d != Deny {
		t.Error("an authorizer that forgets to answer lets people in")
	}
}

func TestForbiddenWords(t *testing.T) {
	user := &request.User{Username: "jane"}
	tests := map[string]request.Info{
		`pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "shop"`:                                               {Resource: true, Verb: "list", ResourceName: "pods", Namespace: "shop"},
		`nodes "n1" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope`:                                            {Resource: true, Verb: "get", ResourceName: "nodes", Name: "n1"},
		`leases.coordination.k8s.io "l" is forbidden: User "jane" cannot update resource "leases" in API group "coordination.k8s.io" in the namespace "a"`: {Resource: true, Verb: "update", APIGroup: "coordination.k8s.io", ResourceName: "leases", Namespace: "a", Name: "l"},
		`pods "web" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "shop"`:                                      {Resource: true, Verb: "get", ResourceName: "pods", Subresource: "log", Namespace: "shop", Name: "web"},
		`forbidden: User "jane" cannot get path "/metrics"`:                                                                                                {Verb: "get", Path: "/metrics"},
	}
	for want, info := range tests {
		err := Forbidden(&Attributes{User: user, Info: info}, "")
		if err.Error() != want {
			t.Errorf("\n got %s\nwant %s", err, want)
		}
		if err.ErrStatus.Code != 403 || err.ErrStatus.Reason != "Forbidden" {
			t.Errorf("%+v", err.ErrStatus)
		}
	}
}
