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
	// reviewTimeout bounds a question, together with the wait for its turn.
	reviewTimeout = 10 * time.Second
	// Questions under way, each of which takes a connection to the API server. Those about strangers,
	// who can cause any number, have turns of their own, so that others need not wait behind them.
	knownAtOnce, strangersAtOnce = 24, 8
	// mostQueued bounds those that wait for their turn or are under way. Beyond it, there is no answer.
	mostQueued = 1024
)

// reviews asks the API server by TokenReviews and SubjectAccessReviews. Strangers are callers without
// a credential, and those whose token was not good the last time, if ever.
type reviews struct {
	tokens, access *rest.Client
	options        *Options
	clock          clock.PassiveClock

	known, strangers turns
	// The answers by checksum of the question. Strangers can't drive out those about others.
	users, nobodies           *lru.Cache
	rights, rightsOfStrangers *lru.Cache
}

// answer is a status that the API server gave.
type answer[T any] struct {
	status T
	until  time.Time
}

func newReviews(o *Options, tokens, access *rest.Client, clock clock.PassiveClock) *reviews {
	return &reviews{
		tokens: tokens, access: access, options: o, clock: clock,
		known: newTurns(knownAtOnce, mostQueued), strangers: newTurns(strangersAtOnce, mostQueued),
		users: lru.New(answers), nobodies: lru.New(answers), rights: lru.New(answers), rightsOfStrangers: lru.New(answers),
	}
}

// turns bounds the questions under way, and those that wait as well.
type turns struct{ taken, queued chan struct{} }

func newTurns(atOnce, queued int) turns {
	return turns{make(chan struct{}, atOnce), make(chan struct{}, queued)}
}

var errBusy = errors.New("too many callers wait for an answer of the API server")

// review asks when it is its turn.
func (t turns) review(ctx context.Context, create func(context.Context) error) error {
	select {
	case t.queued <- struct{}{}:
		defer func() { <-t.queued }()
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	select {
	case t.taken <- struct{}{}:
		defer func() { <-t.taken }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return create(ctx)
}

// lookup returns what is cached; fresh says that it need not be asked again.
func lookup[T any](v *reviews, cache *lru.Cache, key lru.Key) (status T, cached, fresh bool) {
	kept, cached := cache.Get(key)
	if !cached {
		return status, false, false
	}
	old := kept.(answer[T])
	return old.status, true, v.clock.Now().Before(old.until)
}

// keep caches an answer for as long as ttl says.
func keep[T any](v *reviews, cache *lru.Cache, key lru.Key, status T, ttl time.Duration) {
	cache.Add(key, answer[T]{status, v.clock.Now().Add(ttl)})
}

var errUnknownToken = errors.New("invalid bearer token")

// Authenticate implements authenticator, for requests with a token.
func (v *reviews) Authenticate(r *http.Request) (*authenticationv1.UserInfo, bool, error) {
	token := clientauth.BearerToken(r.Header)
	if token == "" {
		return nil, false, nil
	}
	status, err := v.ownerOf(r.Context(), token)
	switch {
	case err != nil:
		return nil, false, err
	case !status.Authenticated:
		return nil, false, errUnknownToken
	}
	return &status.User, true, nil
}

// ownerOf asks whose a token is, if the answer is not cached.
func (v *reviews) ownerOf(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
	key := sha256.Sum256([]byte(token))
	turns := v.strangers
	if status, cached, fresh := lookup[authenticationv1.TokenReviewStatus](v, v.users, key); fresh {
		return status, nil
	} else if cached {
		turns = v.known
	}
	if status, _, fresh := lookup[authenticationv1.TokenReviewStatus](v, v.nobodies, key); fresh {
		return status, nil
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review.SetGroupVersionKind(core.TokenReviews.GVK())
	answer := &authenticationv1.TokenReview{}
	err := turns.review(ctx, func(ctx context.Context) error {
		return v.tokens.Resource(core.TokenReviews, "").Create(ctx, review, answer)
	})
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	switch status := answer.Status; {
	case status.Authenticated:
		keep(v, v.users, key, status, v.options.TokenTTL)
	case status.Error == "": // an error may be the last of an authenticator that is away
		keep(v, v.nobodies, key, status, v.options.TokenTTL)
		fallthrough
	default:
		v.users.Remove(key)
	}
	return answer.Status, nil
}

// May reports whether a user may use a path, and why.
func (v *reviews) May(ctx context.Context, user *authenticationv1.UserInfo, verb, path string) (allowed bool, reason string, err error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User:                  user.Username,
		UID:                   user.UID,
		Groups:                user.Groups,
		Extra:                 map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}
	for key, values := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	question, err := json.Marshal(&spec)
	if err != nil {
		return false, "", err
	}
	key := sha256.Sum256(question)
	turns, cache := v.known, v.rights
	if user.Username == core.UserAnonymous {
		turns, cache = v.strangers, v.rightsOfStrangers
	}
	status, _, fresh := lookup[authorizationv1.SubjectAccessReviewStatus](v, cache, key)
	if !fresh {
		if status, err = v.rightOf(ctx, turns, spec); err != nil {
			return false, "", err
		}
		ttl := v.options.DeniedTTL
		if status.Allowed {
			ttl = v.options.AllowedTTL
		}
		keep(v, cache, key, status, ttl)
	}
	return status.Allowed && !status.Denied, status.Reason, nil
}

func (v *reviews) rightOf(ctx context.Context, turns turns,
	spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	review.SetGroupVersionKind(core.AccessReviews.GVK())
	answer := &authorizationv1.SubjectAccessReview{}
	err := turns.review(ctx, func(ctx context.Context) error {
		return v.access.Resource(core.AccessReviews, "").Create(ctx, review, answer)
	})
	return answer.Status, err
}
