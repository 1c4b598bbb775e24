package filters

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Impersonate lets users act as others (Kubernetes docs, "User impersonation":
// kubectl --as) if they may do so for this action, or may "impersonate" them
// for all.
func Impersonate(authorizer authz.Authorizer, clock clock.PassiveClock, logger *zap.Logger) gin.HandlerFunc {
	i := &impersonation{authorizer: authorizer}
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
		began := clock.Now()
		err = i.allowed(ctx, who, wanted)
		request.Spent(ctx, request.Impersonation, clock.Since(began))
		if err != nil {
			logger.Debug("impersonation refused", zap.String("user", who.Username), zap.String("as", wanted.Username), zap.Error(err))
			fail(c, err)
			return
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

type impersonation struct{ authorizer authz.Authorizer }

// allowed reports whether who may act as wanted, and adds the implied groups to
// wanted. Of several refusals, it returns that of the narrowest way, as upstream does.
func (i *impersonation) allowed(ctx context.Context, who, wanted *request.User) error {
	var refusal error
	asked := attributesOf(who, request.InfoFrom(ctx))
	for _, way := range constraintsOf(who, wanted) {
		err := i.constrained(ctx, way, asked)
		if err == nil {
			wanted.Groups = append(wanted.Groups, way.groups...)
			audit.Impersonation(ctx, way.verb)
			return nil
		}
		refusal = cmp.Or(refusal, err)
	}
	for _, ask := range unconstrained(wanted) {
		if err := i.may(ctx, who, ask); err != nil {
			return cmp.Or(refusal, err)
		}
	}
	return nil
}

// constrained checks the rights for one way: to the action, and to act as the user.
func (i *impersonation) constrained(ctx context.Context, way constraint, asked *authz.Attributes) error {
	if err := i.may(ctx, way.who, way.on(asked)); err != nil {
		return err
	}
	for _, ask := range way.asks {
		if at, reason := never(ask); reason != "" {
			return authz.Forbidden(&authz.Attributes{User: way.who, Info: at}, reason)
		}
		if err := i.may(ctx, way.who, ask); err != nil {
			return err
		}
	}
	return nil
}

func (i *impersonation) may(ctx context.Context, who *request.User, ask request.Info) error {
	attributes := &authz.Attributes{User: who, Info: ask}
	decision, reason, err := i.authorizer.Authorize(ctx, attributes)
	switch {
	case decision == authz.Allow:
		return nil
	case errors.Is(err, authz.ErrStarting):
		return err
	}
	return authz.Forbidden(attributes, reason)
}

// impersonated reads the user that a request wants to act as; nil if there is none.
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
		key := strings.ToLower(escaped)
		if unescaped, err := url.PathUnescape(key); err == nil { // else it is meant as it is
			key = unescaped
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

// unconstrained are the rights needed to act as user for all actions.
func unconstrained(user *request.User) []request.Info {
	asks := impersonations(user, func(resource, subresource, name string) request.Info {
		info := asking("impersonate", resource, "", name)
		info.Subresource = subresource
		if resource == "users" || resource == "groups" {
			info.APIGroup = ""
		}
		return info
	})
	if namespace, name, ok := serviceAccountOf(user.Username); ok {
		asks[0] = asking("impersonate", core.ServiceAccounts.Name, namespace, name)
		asks[0].APIGroup = ""
	}
	return asks
}

// impersonations are the rights for each part of a user, the name first.
func impersonations(user *request.User, ask func(resource, subresource, name string) request.Info) []request.Info {
	out := []request.Info{ask("users", "", user.Username)}
	if user.UID != "" {
		out = append(out, ask("uids", "", user.UID))
	}
	for _, group := range user.Groups {
		out = append(out, ask("groups", "", group))
	}
	for _, key := range slices.Sorted(maps.Keys(user.Extra)) {
		for _, value := range user.Extra[key] {
			out = append(out, ask("userextras", key, value))
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

// complete adds the groups that authentication would have added, unless the user
// is declared unauthenticated.
func complete(user *request.User) {
	if namespace, _, ok := serviceAccountOf(user.Username); ok && len(user.Groups) == 0 {
		user.Groups = []string{core.GroupServiceAccounts, core.GroupServiceAccounts + ":" + namespace}
	}
	group := core.GroupAuthenticated
	if user.Username == core.UserAnonymous {
		group = core.GroupUnauthenticated
	}
	if !slices.Contains(user.Groups, group) && !slices.Contains(user.Groups, core.GroupUnauthenticated) {
		user.Groups = append(user.Groups, group)
	}
}
