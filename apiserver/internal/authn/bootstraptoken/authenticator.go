package bootstraptoken

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Secrets finds secrets. For a missing one it returns an apierrors.IsNotFound error.
type Secrets interface {
	Secret(ctx context.Context, namespace, name string) (*core.Secret, error)
}

// Authenticator checks bootstrap tokens. It is an authn.TokenAuthenticator.
type Authenticator struct {
	Secrets   Secrets
	Audiences []string // what its tokens are valid for: the API
	Clock     clock.PassiveClock
}

// AuthenticateToken implements authn.TokenAuthenticator. For what does not look
// like a bootstrap token, ok is false.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	id, secret, ok := core.SplitBootstrapToken(token)
	if !ok {
		return nil, nil, false, nil
	}
	s, err := a.Secrets.Secret(ctx, core.NamespaceSystem, core.BootstrapTokenSecretPrefix+id)
	if apierrors.IsNotFound(err) {
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	user, err := userOfSecret(s, id, secret, a.Clock.Now())
	if err != nil {
		return nil, nil, false, fmt.Errorf("bootstrap token %s: %w", id, err)
	}
	audiences, err := authn.ForAPI(a.Audiences, wanted)
	if err != nil {
		return nil, nil, false, err
	}
	return user, audiences, true, nil
}
