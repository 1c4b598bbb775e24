package filters

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// granting allows what is listed, and records the requests.
type granting struct {
	rights []string
	asked  []string
}

func (g *granting) Authorize(_ context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	ask := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s/%s/%s %s", at.Verb, at.APIGroup, at.ResourceName, at.Subresource, at.Name, at.Namespace)), " ")
	g.asked = append(g.asked, ask)
	if slices.ContainsFunc(g.rights, func(right string) bool { return strings.HasPrefix(ask, right) }) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// TestConstrainedImpersonation: the webhook requests that kube-apiserver
// v1.37.0 sent for each request, and the result.
func TestConstrainedImpersonation(t *testing.T) {
	const group = "authentication.k8s.io "
	for _, test := range []struct {
		name    string
		header  []string
		rights  []string
		asked   []string
		groups  []string // of the impersonated user; nil if it is refused
		refusal string
	}{
		{"a user, whatever is done", []string{"Impersonate-User", "bob"}, []string{"impersonate users"},
			[]string{"impersonate-on:user-info:list pods// shop", "impersonate users//bob"}, []string{"system:authenticated"}, ""},
		{"a user, to list pods", []string{"Impersonate-User", "bob"}, []string{"impersonate-on:user-info:list", "impersonate:user-info"},
			[]string{"impersonate-on:user-info:list pods// shop", "impersonate:user-info " + group + "users//bob"}, []string{"system:authenticated"}, ""},
		{"a user, to do else", []string{"Impersonate-User", "bob"}, []string{"impersonate-on:user-info:get", "impersonate:user-info"},
			[]string{"impersonate-on:user-info:list pods// shop", "impersonate users//bob"}, nil,
			`pods is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"shop\"`},
		{"another user, to list pods", []string{"Impersonate-User", "eve", "Impersonate-Uid", "7"},
			[]string{"impersonate-on:user-info:list", "impersonate:user-info " + group + "users"},
			nil, nil, `uids.authentication.k8s.io \"7\" is forbidden: User \"jane\" cannot impersonate:user-info resource \"uids\"`},
		{"all of a user", []string{"Impersonate-User", "bob", "Impersonate-Group", "dev", "Impersonate-Uid", "7", "Impersonate-Extra-Example.com%2fcolor", "blue"},
			[]string{"impersonate-on:", "impersonate:"},
			[]string{"impersonate-on:user-info:list pods// shop", "impersonate:user-info " + group + "users//bob", "impersonate:user-info " + group + "uids//7",
				"impersonate:user-info " + group + "groups//dev", "impersonate:user-info " + group + "userextras/example.com/color/blue"},
			[]string{"dev", "system:authenticated"}, ""},
		{"a user with a key of nobody's", []string{"Impersonate-User", "bob", "Impersonate-Extra-Color", "blue"}, []string{"impersonate-on:", "impersonate:"}, nil,
			nil,
			`userextras.authentication.k8s.io is forbidden: User \"jane\" cannot impersonate:user-info resource \"userextras\" in API group \"authentication.k8s.io\" at the cluster scope: ` +
				`impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"color\": must be a domain-prefixed path (such as \"acme.io/foo\")`},
		{"the masters", []string{"Impersonate-User", "bob", "Impersonate-Group", "system:masters"}, []string{"impersonate-on:", "impersonate:"}, nil, nil,
			`groups.authentication.k8s.io \"system:masters\" is forbidden: User \"jane\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not allowed`},
		{"nobody known", []string{"Impersonate-User", "bob", "Impersonate-Group", "system:unauthenticated"}, []string{"impersonate-on:", "impersonate:"}, nil,
			[]string{"system:unauthenticated"}, ""},
		{"a service account", []string{"Impersonate-User", "system:serviceaccount:shop:web"}, []string{"impersonate-on:", "impersonate:"},
			[]string{"impersonate-on:serviceaccount:list pods// shop", "impersonate:serviceaccount " + group + "serviceaccounts//web shop"},
			[]string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}, ""},
		{"a service account as a user", []string{"Impersonate-User", "system:serviceaccount:shop:web"}, []string{"impersonate-on:user-info", "impersonate:user-info"},
			[]string{"impersonate-on:serviceaccount:list pods// shop", "impersonate serviceaccounts//web shop"}, nil,
			`pods is forbidden: User \"jane\" cannot impersonate-on:serviceaccount:list resource`},
		{"a service account in other groups", []string{"Impersonate-User", "system:serviceaccount:shop:web", "Impersonate-Group", "dev"},
			[]string{"impersonate-on:", "impersonate:"},
			[]string{"impersonate serviceaccounts//web shop"}, nil, `serviceaccounts \"web\" is forbidden: User \"jane\" cannot impersonate resource`},
		{"a node", []string{"Impersonate-User", "system:node:n2"}, []string{"impersonate-on:", "impersonate:"},
			[]string{"impersonate-on:arbitrary-node:list pods// shop", "impersonate:arbitrary-node " + group + "nodes//n2"},
			[]string{"system:nodes", "system:authenticated"}, ""},
		{"a node by its group", []string{"Impersonate-User", "system:node:n2", "Impersonate-Group", "system:nodes"}, []string{"impersonate-on:", "impersonate:"},
			[]string{"impersonate users//system:node:n2"}, nil, `users \"system:node:n2\" is forbidden`},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := &granting{rights: test.rights}
			seen, w := impersonating(rules, as("jane"), test.header)
			if test.asked != nil && !slices.Equal(rules.asked, test.asked) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(rules.asked, "\n"), strings.Join(test.asked, "\n"))
			}
			if (seen == nil) != (test.groups == nil) || seen != nil && !slices.Equal(seen.Groups, test.groups) {
				t.Errorf("acts as %+v", seen)
			}
			if !strings.Contains(w, test.refusal) {
				t.Errorf("said %s\nwant %s", w, test.refusal)
			}
		})
	}
}

// TestActingAsOnesNode: an account may act as its pod's node; the check does
// not name the pod.
func TestActingAsOnesNode(t *testing.T) {
	agent := func(c *gin.Context) {
		user := &request.User{Username: "system:serviceaccount:ops:agent", Extra: map[string]authenticationv1.ExtraValue{authn.ExtraNodeName: {"n1"}, "a/b": {"c"}}}
		c.Request = c.Request.WithContext(request.WithUser(c.Request.Context(), user))
	}
	for node, want := range map[string][]string{
		"n1": {"impersonate-on:associated-node:list pods// shop", "impersonate:associated-node authentication.k8s.io nodes//*"},
		"n2": {"impersonate-on:arbitrary-node:list pods// shop", "impersonate users//system:node:n2"},
	} {
		rules := &granting{rights: []string{"impersonate-on:associated-node", "impersonate:associated-node"}}
		seen, _ := impersonating(rules, agent, []string{"Impersonate-User", "system:node:" + node})
		if !slices.Equal(rules.asked, want) || (seen != nil) != (node == "n1") {
			t.Errorf("%s: asked %q, acts as %+v", node, rules.asked, seen)
		}
	}
	ways := constraintsOf(&request.User{
		Username: "system:serviceaccount:ops:agent", Extra: map[string]authenticationv1.ExtraValue{authn.ExtraNodeName: {"n1"}, "a/b": {"c"}},
	}, &request.User{Username: "system:node:n1"})
	if got := ways[0].who.Extra; len(got) != 1 || !slices.Equal(got[extraAssociatedNodeKeys], []string{"a/b", authn.ExtraNodeName}) {
		t.Errorf("authorizers see %v", got)
	}
}

// impersonating lists a namespace's pods with these headers, and returns as
// whom, or the refusal.
func impersonating(rules authz.Authorizer, who gin.HandlerFunc, header []string) (seen *request.User, refusal string) {
	handler := chain(func(c *gin.Context) {
		seen = request.UserFrom(c.Request.Context())
		ok(c)
	}, who, Impersonate(rules, clock.RealClock{}, zap.NewNop()))
	w := serve(handler, http.MethodGet, "/api/v1/namespaces/shop/pods", header...)
	return seen, w.Body.String()
}
