package filters

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// allowing allows impersonating what is listed as "resource/name".
type allowing []string

func (a allowing) Authorize(_ context.Context, at *authz.Attributes) (authz.Decision, string, error) {
	if at.Verb == "impersonate" && slices.Contains(a, at.ResourceName+"/"+at.Name) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// starting has its policy only from the second request on.
type starting struct{ asked int }

func (s *starting) Authorize(context.Context, *authz.Attributes) (authz.Decision, string, error) {
	if s.asked++; s.asked == 1 {
		return authz.NoOpinion, "", authz.ErrStarting
	}
	return authz.NoOpinion, "", nil
}

// A user who was refused because the policy has not been read yet is told to
// retry.
func TestImpersonateAtTheStart(t *testing.T) {
	for name, header := range map[string]string{"a user": "bob", "a node": "system:node:n1"} {
		handler := chain(ok, as("jane"), Impersonate(&starting{}, clock.RealClock{}, zap.NewNop()))
		again := serve(handler, http.MethodGet, "/", "Impersonate-User", header)
		if again.Code == http.StatusForbidden || again.Code < 400 {
			t.Errorf("%s, at the start: %d %s", name, again.Code, again.Body)
		}
		if later := serve(handler, http.MethodGet, "/", "Impersonate-User", header); later.Code != http.StatusForbidden {
			t.Errorf("%s, later: %d %s", name, later.Code, later.Body)
		}
	}
}

func TestImpersonate(t *testing.T) {
	rules := allowing{"users/bob", "groups/dev", "serviceaccounts/web", "uids/7", "userextras/blue"}
	tests := map[string]struct {
		header []string
		code   int
		user   string
		groups []string
	}{
		"nobody": {nil, 200, "jane", nil},
		"a user": {[]string{"Impersonate-User", "bob"}, 200, "bob", []string{"system:authenticated"}},
		"with all": {[]string{"Impersonate-User", "bob", "Impersonate-Group", "dev", "Impersonate-Uid", "7", "Impersonate-Extra-Color", "blue"}, 200,
			"bob", []string{"dev", "system:authenticated"}},
		"a service account": {[]string{"Impersonate-User", "system:serviceaccount:shop:web"}, 200, "system:serviceaccount:shop:web",
			[]string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}},
		"another user":        {[]string{"Impersonate-User", "root"}, 403, "", nil},
		"another group":       {[]string{"Impersonate-User", "bob", "Impersonate-Group", "system:masters"}, 403, "", nil},
		"another extra value": {[]string{"Impersonate-User", "bob", "Impersonate-Extra-Color", "red"}, 403, "", nil},
		"a key as it is":      {[]string{"Impersonate-User", "bob", "Impersonate-Extra-Color%zz", "blue"}, 200, "bob", []string{"system:authenticated"}},
		"a group alone":       {[]string{"Impersonate-Group", "dev"}, 400, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var seen *request.User
			handler := chain(func(c *gin.Context) {
				seen = request.UserFrom(c.Request.Context())
				if c.GetHeader("Impersonate-User") != "" {
					t.Error("the header travels on")
				}
				ok(c)
			}, as("jane"), Impersonate(rules, clock.RealClock{}, zap.NewNop()))
			w := serve(handler, http.MethodGet, "/", test.header...)
			if w.Code != test.code {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if test.code == 200 && (seen.Username != test.user || !slices.Equal(seen.Groups, test.groups)) {
				t.Errorf("acts as %+v", seen)
			}
		})
	}
}
