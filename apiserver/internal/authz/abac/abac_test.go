package abac

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

func policies(t *testing.T, specs ...string) *Authorizer {
	t.Helper()
	text := "# who may do what\n\n"
	for _, s := range specs {
		if line, ok := strings.CutPrefix(s, "unversioned "); ok {
			text += line + "\n"
			continue
		}
		text += `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":` + s + "}\n"
	}
	file := filepath.Join(t.TempDir(), "policy.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestPolicies(t *testing.T) {
	resource := func(verb, group, resource, namespace string) request.Info {
		return request.Info{Resource: true, Verb: verb, APIGroup: group, ResourceName: resource, Namespace: namespace}
	}
	path := func(verb, path string) request.Info { return request.Info{Verb: verb, Path: path} }
	getPods := resource("get", "", "pods", "shop")
	for name, test := range map[string]struct {
		policy string
		asked  request.Info
		allow  bool
	}{
		"user":                   {`{"user":"jane","resource":"pods","namespace":"shop"}`, getPods, true},
		"another user":           {`{"user":"bob","resource":"pods","namespace":"shop"}`, getPods, false},
		"any user":               {`{"user":"*","resource":"pods","namespace":"*"}`, getPods, true},
		"any user or group":      {`{"user":"*","group":"ops","resource":"pods","namespace":"*"}`, getPods, true},
		"group":                  {`{"group":"dev","resource":"*","namespace":"*","apiGroup":"*"}`, getPods, true},
		"another group":          {`{"group":"ops","resource":"*","namespace":"*"}`, getPods, false},
		"user, not in the group": {`{"user":"jane","group":"ops","resource":"*","namespace":"*"}`, getPods, false},
		"user, in the group":     {`{"user":"jane","group":"dev","resource":"*","namespace":"*"}`, getPods, true},
		"nobody":                 {`{"resource":"*","namespace":"*"}`, getPods, false},
		"another namespace":      {`{"user":"jane","resource":"pods","namespace":"bar"}`, getPods, false},
		"no namespace":           {`{"user":"jane","resource":"pods"}`, getPods, false},
		"no namespace, a node":   {`{"user":"jane","resource":"nodes"}`, resource("get", "", "nodes", ""), true},
		"another API group":      {`{"user":"jane","resource":"*","namespace":"*"}`, resource("get", "apps", "deployments", "shop"), false},
		"any API group":          {`{"user":"jane","resource":"*","namespace":"*","apiGroup":"*"}`, resource("get", "apps", "deployments", "shop"), true},
		"read":                   {`{"user":"jane","resource":"pods","namespace":"*","readonly":true}`, resource("watch", "", "pods", "shop"), true},
		"write, where read only": {`{"user":"jane","resource":"pods","namespace":"*","readonly":true}`, resource("delete", "", "pods", "shop"), false},
		"path":                   {`{"user":"jane","nonResourcePath":"/version"}`, path("get", "/version"), true},
		"path below":             {`{"user":"jane","nonResourcePath":"/healthz/*"}`, path("get", "/healthz/etcd"), true},
		"path beside":            {`{"user":"jane","nonResourcePath":"/healthz/*"}`, path("get", "/healthzz"), false},
		"any path":               {`{"user":"jane","nonResourcePath":"*"}`, path("get", "/"), true},
		"path, by resources":     {`{"user":"jane","resource":"*","namespace":"*","apiGroup":"*"}`, path("get", "/version"), false},
		"resource, by paths":     {`{"user":"jane","nonResourcePath":"*"}`, getPods, false},
		"unversioned: anything":  {`unversioned {}`, resource("delete", "apps", "deployments", "shop"), true},
		"unversioned: any path":  {`unversioned {"group":"dev"}`, path("post", "/version"), true},
		"unversioned: no path":   {`unversioned {"namespace":"shop"}`, path("get", "/version"), false},
		"unversioned: namespace": {`unversioned {"namespace":"bar"}`, getPods, false},
		"unversioned: resource":  {`unversioned {"user":"jane","resource":"pods","readonly":true}`, getPods, true},
		"unversioned: read only": {`unversioned {"user":"jane","resource":"pods","readonly":true}`, resource("delete", "", "pods", "shop"), false},
		"unversioned: another":   {`unversioned {"user":"bob"}`, getPods, false},
		"post, where read only":  {`{"user":"jane","nonResourcePath":"*","readonly":true}`, path("post", "/version"), false},
	} {
		t.Run(name, func(t *testing.T) {
			at := &authz.Attributes{User: &request.User{Username: "jane", Groups: []string{"dev", core.GroupAuthenticated}}, Info: test.asked}
			decision, _, err := policies(t, test.policy).Authorize(t.Context(), at)
			if err != nil || (decision == authz.Allow) != test.allow || decision == authz.Deny {
				t.Errorf("%v %v", decision, err)
			}
		})
	}
}

func TestTheAnonymousAreNotAnybody(t *testing.T) {
	for _, policy := range []string{
		`{"user":"*","resource":"*","namespace":"*"}`, `{"group":"*","resource":"*","namespace":"*"}`, `unversioned {}`, `unversioned {"user":"*"}`,
	} {
		at := &authz.Attributes{
			User: &request.User{Username: "system:anonymous", Groups: []string{core.GroupUnauthenticated}},
			Info: request.Info{Resource: true, Verb: "get", ResourceName: "pods", Namespace: "shop"},
		}
		if decision, _, err := policies(t, policy).Authorize(t.Context(), at); err != nil || decision != authz.NoOpinion {
			t.Errorf("%s: %v %v", policy, decision, err)
		}
	}
}

func TestRules(t *testing.T) {
	a := policies(t, `{"user":"jane","resource":"pods","namespace":"shop","readonly":true}`, `{"user":"jane","nonResourcePath":"/version"}`,
		`{"user":"bob","resource":"*","namespace":"*"}`)
	rules, err := a.RulesFor(t.Context(), &request.User{Username: "jane"}, "shop")
	if err != nil || len(rules) != 2 || len(rules[0].Verbs) != 3 || rules[1].NonResourceURLs[0] != "/version" {
		t.Errorf("%+v %v", rules, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		`{"user":"jane","verb":"get"}`: `unknown field "verb"`,
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"jane","verb":"get"}}`: `unknown field "spec.verb"`,
		`{"apiVersion":"abac.authorization.kubernetes.io/v2","kind":"Policy","spec":{"user":"jane"}}`:                   "is supported",
		`{`: "line 2",
	} {
		if _, err := read(strings.NewReader("#\n" + line + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
