package serviceaccount

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

const (
	// legacyIssuer is the issuer of tokens that live in a secret, whatever the
	// server's own issuer is.
	legacyIssuer = "kubernetes/serviceaccount"
	// invalidSince marks a secret whose token nobody has used for long.
	invalidSince = "kubernetes.io/legacy-token-invalid-since"
	// LastUsed is the label by which a secret tells when its token was last seen.
	LastUsed = "kubernetes.io/legacy-token-last-used"
)

// Date is a day as labels of secrets tell it.
func Date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// legacyClaims are what a token in a secret says.
type legacyClaims struct {
	jwt.RegisteredClaims
	Namespace  string `json:"kubernetes.io/serviceaccount/namespace"`
	Secret     string `json:"kubernetes.io/serviceaccount/secret.name"`
	Account    string `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

// Legacy checks tokens that are kept in secrets of type
// kubernetes.io/service-account-token (Kubernetes docs, "Manually create a
// long-lived API token for a ServiceAccount"). They never expire: they end
// with their secret.
type Legacy struct {
	audiences []string
	keys      []PublicKey
	objects   Objects
	clock     clock.PassiveClock
	parser    *jwt.Parser
	peek      *jwt.Parser
}

// NewLegacy returns a Legacy for tokens signed with one of keys, which are for
// the API.
func NewLegacy(apiAudiences []string, keys []PublicKey, objects Objects, clock clock.PassiveClock) *Legacy {
	return &Legacy{
		audiences: apiAudiences, keys: keys, objects: objects, clock: clock,
		parser: jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithTimeFunc(clock.Now)), peek: jwt.NewParser(),
	}
}

// AuthenticateToken implements authn.TokenAuthenticator.
func (l *Legacy) AuthenticateToken(ctx context.Context, token string, wanted []string) (*request.User, []string, bool, error) {
	if issuerOf(l.peek, token) != legacyIssuer {
		return nil, nil, false, nil
	}
	var c legacyClaims
	if _, err := l.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) { return candidates(l.keys, t) }); err != nil {
		return nil, nil, false, fmt.Errorf("service account token of a secret: %w", err)
	}
	if c.Namespace == "" || c.Secret == "" || c.Account == "" || c.AccountUID == "" || c.Subject != core.ServiceAccountPrefix+c.Namespace+":"+c.Account {
		return nil, nil, false, errors.New("service account token of a secret: names no secret or no service account")
	}
	audiences, err := authn.ForAPI(l.audiences, wanted)
	if err != nil {
		return nil, nil, false, err
	}
	if err := l.alive(ctx, &c, token); err != nil {
		return nil, nil, false, err
	}
	return &request.User{
		Username: c.Subject, UID: c.AccountUID,
		Groups: []string{core.GroupServiceAccounts, core.GroupServiceAccounts + ":" + c.Namespace},
	}, audiences, true, nil
}

// alive checks that the secret still holds this very token, and has written
// down that it is used.
func (l *Legacy) alive(ctx context.Context, c *legacyClaims, token string) error {
	secret, err := l.objects.Secret(ctx, c.Namespace, c.Secret)
	if err != nil {
		return fmt.Errorf("service account token: look up its secret %s: %w", c.Secret, err)
	}
	switch {
	case secret.DeletionTimestamp != nil:
		return fmt.Errorf("service account token: its secret %s has been deleted", c.Secret)
	case secret.Type != corev1.SecretTypeServiceAccountToken || subtle.ConstantTimeCompare(secret.Data[corev1.ServiceAccountTokenKey], []byte(token)) != 1:
		return fmt.Errorf("service account token: its secret %s holds another one", c.Secret)
	case secret.Labels[invalidSince] != "":
		return fmt.Errorf("service account token: its secret %s says that it is invalid since %s", c.Secret, secret.Labels[invalidSince])
	}
	account, err := l.objects.ServiceAccount(ctx, c.Namespace, c.Account)
	if err := same(l.clock, "service account", reference{Name: c.Account, UID: c.AccountUID}, account, err); err != nil {
		return err
	}
	if today := Date(l.clock.Now()); secret.Labels[LastUsed] != today {
		l.objects.TokenUsed(ctx, secret, today)
	}
	return nil
}
