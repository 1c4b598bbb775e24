package delegatedauth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/proto/clientauth"
	"kctl/proto/core"
	"kctl/proto/rest"
)

const (
	// answers is how many of each kind are cached.
	answers = 1024
	// reviewTimeout bounds a question.
	reviewTimeout = 10 * time.Second
	// reviewsAtOnce bounds the questions under way: strangers cause them, and each takes a
	// connection to the API server.
	reviewsAtOnce = 32
)

// reviews asks the API server by TokenReviews and SubjectAccessReviews.
type reviews struct {
	tokens, access *rest.Client
	options        *Options
	clock          clock.PassiveClock

	slots           chan struct{}
	users, accesses *lru.Cache // of answers, by checksum of the question
}

// answer is a status that the API server gave.
type answer[T any] struct {
	status T
	until  time.Time
}

func newReviews(o *Options, tokens, access *rest.Client, clock clock.PassiveClock) *reviews {
	return &reviews{
		tokens: tokens, access: access, options: o, clock: clock,
		slots: make(chan struct{}, reviewsAtOnce), users: lru.New(answers), accesses: lru.New(answers),
	}
}

// ask asks what is not cached. The answer is cached for as long as ttl says.
func ask[T any](ctx context.Context, v *reviews, cache *lru.Cache, question []byte, create func(context.Context) (T, error), ttl func(T) time.Duration) (T, error) {
	key := sha256.Sum256(question)
	if kept, ok := cache.Get(key); ok {
		if kept := kept.(answer[T]); v.clock.Now().Before(kept.until) {
			return kept.status, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var none T
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	status, err := create(ctx)
	if err != nil {
		return none, err
	}
	cache.Add(key, answer[T]{status, v.clock.Now().Add(ttl(status))})
	return status, nil
}

var errUnknownToken = errors.New("invalid bearer token")

// Authenticate implements authenticator, for requests with a token.
func (v *reviews) Authenticate(r *http.Request) (*authenticationv1.UserInfo, bool, error) {
	token := clientauth.BearerToken(r.Header)
	if token == "" {
		return nil, false, nil
	}
	status, err := ask(r.Context(), v, v.users, []byte(token), func(ctx context.Context) (authenticationv1.TokenReviewStatus, error) {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		review.SetGroupVersionKind(core.TokenReviews.GVK())
		answer := &authenticationv1.TokenReview{}
		err := v.tokens.Resource(core.TokenReviews, "").Create(ctx, review, answer)
		return answer.Status, err
	}, func(status authenticationv1.TokenReviewStatus) time.Duration {
		if status.Error != "" { // it may be the last of an authenticator that is away
			return 0
		}
		return v.options.TokenTTL
	})
	switch {
	case err != nil:
		return nil, false, err
	case !status.Authenticated:
		return nil, false, errUnknownToken
	}
	return &status.User, true, nil
}

// May reports whether a user may use a path, and why.
func (v *reviews) May(ctx context.Context, user *authenticationv1.UserInfo, verb, path string) (allowed bool, reason string, err error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}
	for key, values := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	question, err := json.Marshal(&spec)
	if err != nil {
		return false, "", err
	}
	status, err := ask(ctx, v, v.accesses, question, func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		review.SetGroupVersionKind(core.AccessReviews.GVK())
		answer := &authorizationv1.SubjectAccessReview{}
		err := v.access.Resource(core.AccessReviews, "").Create(ctx, review, answer)
		return answer.Status, err
	}, func(status authorizationv1.SubjectAccessReviewStatus) time.Duration {
		if status.Allowed {
			return v.options.AllowedTTL
		}
		return v.options.DeniedTTL
	})
	return status.Allowed && !status.Denied, status.Reason, err
}
