package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Authorizer decides whether a user may make a request to the node.
type Authorizer struct {
	always bool
	node   string
	ttls   CacheTTLs
	client *rest.Client
	clock  clock.PassiveClock
	cache  *lru.Cache // of questions
}

// accessAnswer is the API server's answer to a review.
type accessAnswer struct {
	allowed bool
	expires time.Time
}

// NewAuthorizer returns an Authorizer for node that asks the API server behind
// client and caches its answers as holds says.
func NewAuthorizer(node string, client *rest.Client, holds CacheTTLs, clock clock.PassiveClock) *Authorizer {
	return &Authorizer{node: node, ttls: holds, client: client, clock: clock, cache: lru.New(cacheSize)}
}

// AlwaysAllow returns an Authorizer that allows everything to every
// authenticated user.
func AlwaysAllow() *Authorizer { return &Authorizer{always: true} }

// Denied is a refusal.
type Denied struct {
	User         string
	Verb         string
	Subresources []string
}

func (d *Denied) Error() string {
	return fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", d.User, d.Verb, d.Subresources)
}

// Authorize returns nil if user may make the request, a *Denied if not, or an
// error if that could not be found out.
func (a *Authorizer) Authorize(ctx context.Context, user authenticationv1.UserInfo, method, path string) error {
	if a.always {
		return nil
	}
	denied := &Denied{User: user.Username, Verb: verbOf(method, path), Subresources: subresourcesOf(path)}
	for _, subresource := range denied.Subresources {
		allowed, err := a.reviewed(ctx, user, denied.Verb, subresource)
		if err != nil {
			return fmt.Errorf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s): %w",
				user.Username, denied.Verb, subresource, err)
		}
		if allowed {
			return nil
		}
	}
	return denied
}

func (a *Authorizer) reviewed(ctx context.Context, user authenticationv1.UserInfo, verb, subresource string) (bool, error) {
	review := a.newAccessReview(user, verb, subresource)
	spec, err := json.Marshal(review.Spec)
	if err != nil {
		return false, err
	}
	key := string(spec)
	if kept, ok := a.cache.Get(key); ok {
		if answer := kept.(accessAnswer); !backoff.Passed(a.clock.Now(), answer.expires) {
			return answer.allowed, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if err := a.client.Resource(core.AccessReviews, "").Create(ctx, review, review); err != nil {
		return false, err
	}
	answer := accessAnswer{allowed: review.Status.Allowed, expires: a.clock.Now().Add(a.ttls.Denied)}
	if answer.allowed {
		answer.expires = a.clock.Now().Add(a.ttls.Allowed)
	}
	a.cache.Add(key, answer)
	return answer.allowed, nil
}

func (a *Authorizer) newAccessReview(user authenticationv1.UserInfo, verb, subresource string) *authorizationv1.SubjectAccessReview {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: slices.Clone(user.Groups), UID: user.UID,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: a.node,
		},
	}}
	if len(user.Extra) > 0 {
		review.Spec.Extra = make(map[string]authorizationv1.ExtraValue, len(user.Extra))
		for key, value := range user.Extra {
			review.Spec.Extra[key] = authorizationv1.ExtraValue(value)
		}
	}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	return review
}

// verbOf is get for requests that only read. WebSockets opened by GET do
// something in a container.
func verbOf(method, path string) string {
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "exec", "attach", "portForward", "run":
		return "create"
	}
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "get"
}

// subresourcesOf are the node's subresources any of which gives access to a
// path, the narrowest first.
func subresourcesOf(path string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "stats":
		return []string{"stats"}
	case "metrics":
		return []string{"metrics"}
	case "logs":
		return []string{"log"}
	case "checkpoint":
		return []string{"checkpoint"}
	case "pods", "runningpods":
		return []string{"pods", "proxy"}
	case "healthz", "livez", "readyz":
		return []string{"healthz", "proxy"}
	case "statusz":
		return []string{"statusz"}
	case "flagz":
		return []string{"configz"}
	case "configz":
		return []string{"configz", "proxy"}
	}
	return []string{"proxy"}
}
