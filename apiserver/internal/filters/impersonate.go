package filters

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Impersonate lets users act as others where they are allowed to
// "impersonate" them (Kubernetes docs, "User impersonation"): kubectl --as.
func Impersonate(authorizer authz.Authorizer, logger *zap.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		wanted, err := impersonated(c.Request.Header)
		if err != nil {
			fail(c, err)
			return
		}
		if wanted == nil {
			c.Next()
			return
		}
		ctx := c.Request.Context()
		who := request.UserFrom(ctx)
		for _, info := range impersonations(wanted) {
			attributes := &authz.Attributes{User: who, Info: info}
			decision, reason, err := authorizer.Authorize(ctx, attributes)
			if decision != authz.Allow {
				logger.Debug("impersonation refused", zap.String("user", who.Username), zap.String("as", wanted.Username), zap.Error(err))
				fail(c, authz.Forbidden(attributes, reason))
				return
			}
		}
		complete(wanted)
		logger.Debug("impersonation", zap.String("user", who.Username), zap.String("as", wanted.Username), zap.Strings("groups", wanted.Groups))
		for name := range c.Request.Header {
			if strings.HasPrefix(name, "Impersonate-") {
				c.Request.Header.Del(name)
			}
		}
		c.Request = c.Request.WithContext(request.WithUser(ctx, wanted))
		c.Next()
	}
}

// impersonated reads whom a request wants to act as; nil for nobody else.
func impersonated(header http.Header) (*request.User, error) {
	user := &request.User{
		Username: header.Get(authenticationv1.ImpersonateUserHeader),
		UID:      header.Get(authenticationv1.ImpersonateUIDHeader),
		Groups:   slices.Clone(header.Values(authenticationv1.ImpersonateGroupHeader)),
		Extra:    map[string]authenticationv1.ExtraValue{},
	}
	for name, values := range header {
		escaped, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key, err := url.PathUnescape(strings.ToLower(escaped))
		if err != nil {
			return nil, apierrors.NewBadRequest("header " + name + ": " + err.Error())
		}
		user.Extra[key] = append(user.Extra[key], values...)
	}
	if user.Username != "" {
		return user, nil
	}
	if user.UID != "" || len(user.Groups) > 0 || len(user.Extra) > 0 {
		return nil, apierrors.NewBadRequest("requested to impersonate a group, a uid or extra values without impersonating a user")
	}
	return nil, nil
}

// impersonations is what the requester has to be allowed.
func impersonations(user *request.User) []request.Info {
	ask := func(group, resource, subresource, namespace, name string) request.Info {
		return request.Info{
			Resource: true, Verb: "impersonate", APIGroup: group, APIVersion: "v1",
			ResourceName: resource, Subresource: subresource, Namespace: namespace, Name: name,
		}
	}
	var out []request.Info
	if namespace, name, ok := serviceAccountOf(user.Username); ok {
		out = append(out, ask("", core.ServiceAccounts.Name, "", namespace, name))
	} else {
		out = append(out, ask("", "users", "", "", user.Username))
	}
	for _, group := range user.Groups {
		out = append(out, ask("", "groups", "", "", group))
	}
	if user.UID != "" {
		out = append(out, ask(authenticationv1.GroupName, "uids", "", "", user.UID))
	}
	for key, values := range user.Extra {
		for _, value := range values {
			out = append(out, ask(authenticationv1.GroupName, "userextras", key, "", value))
		}
	}
	return out
}

func serviceAccountOf(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, core.ServiceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// complete adds the groups that authentication would have added.
func complete(user *request.User) {
	if namespace, _, ok := serviceAccountOf(user.Username); ok && len(user.Groups) == 0 {
		user.Groups = []string{core.GroupServiceAccounts, core.GroupServiceAccounts + ":" + namespace}
	}
	group := core.GroupAuthenticated
	if user.Username == core.UserAnonymous {
		group = core.GroupUnauthenticated
	}
	if !slices.Contains(user.Groups, group) {
		user.Groups = append(user.Groups, group)
	}
}
