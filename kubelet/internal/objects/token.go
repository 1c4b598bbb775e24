package objects

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
)

// maxTokenAge is the age at which a token is replaced however long it lasts.
const maxTokenAge = 24 * time.Hour

// requestToken asks the API server; refused says that this was not allowed
// before.
type requestToken func(ctx context.Context, key tokenKey, request *authenticationv1.TokenRequest,
	refused bool) (*authenticationv1.TokenRequest, error)

// tokens keeps the tokens of registered pods until they should be replaced.
type tokens struct {
	request requestToken
	clock   clock.PassiveClock

	podEntries[tokenKey, tokenEntry]
}

// tokenKey holds all that a pod's token depends on.
type tokenKey struct {
	namespace      string
	serviceAccount string
	audience       string
	seconds        int64
}

// tokenEntry is one token.
type tokenEntry struct {
	token   string
	replace time.Time
	expires time.Time
	refused bool
}

func newTokens(clock clock.PassiveClock, request requestToken) *tokens {
	return &tokens{request: request, clock: clock}
}

func (t *tokens) get(ctx context.Context, pod *core.Pod, audience string, seconds int64) (string, error) {
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	key := tokenKey{pod.Namespace, account, audience, seconds}
	e, give, err := t.take(ctx, pod.UID, key)
	if err != nil {
		return "", fmt.Errorf("waiting for a token that is being fetched: %w", err)
	}
	defer give()
	now := t.clock.Now()
	if e.token != "" && !backoff.Passed(now, e.replace) {
		return e.token, nil
	}
	good := e.token != "" && !backoff.Passed(now, e.expires) // then the next caller tries again
	if err := t.renew(ctx, e, now, key, pod); err != nil && !good {
		return "", fmt.Errorf("failed to fetch token: %w", err)
	}
	return e.token, nil
}

// renew asks for the pod's token of key and puts it into e, which the caller has
// taken.
func (t *tokens) renew(ctx context.Context, e *tokenEntry, now time.Time, key tokenKey, pod *core.Pod) error {
	answer, err := t.request(ctx, key, tokenRequest(pod, key.audience, key.seconds), e.refused)
	if err != nil {
		e.refused = e.refused || apierrors.IsForbidden(err) && ctx.Err() == nil
		return err
	}
	e.token = answer.Status.Token
	life := lifetimeOf(answer, now)
	e.expires, e.replace = now.Add(life), now.Add(min(life*4/5, maxTokenAge))
	return nil
}

// lifetimeOf is how long a token lasts from now on. The server may grant a
// different lifetime from the requested one. If our clock and the server's
// disagree, so that a token seems to outlast its lifetime or to have expired
// before it was issued, the lifetime counts.
func lifetimeOf(answer *authenticationv1.TokenRequest, now time.Time) time.Duration {
	left := answer.Status.ExpirationTimestamp.Sub(now)
	if answer.Spec.ExpirationSeconds == nil {
		return left
	}
	life := time.Duration(*answer.Spec.ExpirationSeconds) * time.Second
	if left <= 0 || left > life {
		return life
	}
	return left
}

func tokenRequest(pod *core.Pod, audience string, seconds int64) *authenticationv1.TokenRequest {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
			},
		},
	}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	request.APIVersion, request.Kind = "authentication.k8s.io/v1", "TokenRequest"
	return request
}
