package serviceaccount

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/authn"
	"kctl/proto/core"
)

const (
	defaultLifetime = time.Hour
	// A kubelet asks for exactly this lifetime on behalf of programs that may not
	// read their token file again. As upstream does, such tokens live for a year,
	// and contain the time from which their use is worth a warning.
	warnOnlyLifetime = time.Hour + 7*time.Second
	extendedLifetime = 365 * 24 * time.Hour
)

// Bound is what a token is bound to besides its service account: the token is
// valid only while these exist. At most one of Pod, Secret and Node is the
// request's boundObjectRef; Node together with Pod is the pod's node, which is
// named in the token but need not go on existing.
type Bound struct {
	Pod    *core.Pod
	Secret *core.Secret
	Node   *core.Node
}

// Issuer makes tokens.
type Issuer struct {
	// Longest is the longest lifetime of a token; 0 for no bound.
	Longest time.Duration
	// Exact: no token lives longer than requested.
	Exact bool

	name      string
	audiences []string
	key       crypto.Signer
	keyID     string
	method    jwt.SigningMethod
	clock     clock.PassiveClock
}

// NewIssuer returns an Issuer that signs with key under the given issuer name.
// Tokens requested without an audience are for apiAudiences.
func NewIssuer(name string, apiAudiences []string, key crypto.Signer, clock clock.PassiveClock) (*Issuer, error) {
	if name == "" {
		return nil, errors.New("service account issuer: no name")
	}
	if len(apiAudiences) == 0 {
		return nil, errors.New("service account issuer: no API audience")
	}
	public, err := newPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("service account issuer: %w", err)
	}
	method, err := methodOf(public.Key)
	if err != nil {
		return nil, fmt.Errorf("service account issuer: %w", err)
	}
	return &Issuer{name: name, audiences: slices.Clone(apiAudiences), key: key, keyID: public.ID, method: method, clock: clock}, nil
}

// MostSeconds is the longest lifetime that may be requested; 0 for any.
func (i *Issuer) MostSeconds() int64 { return int64(i.Longest / time.Second) }

// Audiences are those of tokens requested without any.
func (i *Issuer) Audiences() []string { return slices.Clone(i.audiences) }

// Token makes a token for sa according to spec. The caller has validated spec
// and looked up its boundObjectRef. expiry is the time for the client: if the
// token's life was extended, it is earlier than the token's own.
func (i *Issuer) Token(ctx context.Context, sa *core.ServiceAccount, spec authenticationv1.TokenRequestSpec,
	bound Bound) (token string, expiry time.Time, err error) {
	now := i.clock.Now()
	lifetime := defaultLifetime
	if spec.ExpirationSeconds != nil {
		lifetime = time.Duration(*spec.ExpirationSeconds) * time.Second
	}
	expiry = now.Add(lifetime)
	audiences := spec.Audiences
	if len(audiences) == 0 {
		audiences = i.audiences
	}
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{
			ID:        uuid.NewString(),
			Issuer:    i.name,
			Subject:   core.ServiceAccountPrefix + sa.Namespace + ":" + sa.Name,
			Audience:  jwt.ClaimStrings(audiences),
			IssuedAt:  jwt.NewNumericDate(now),
			NotBefore: jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(expiry),
		},
		Kubernetes: claimsOf(sa, bound),
	}
	if bound.Pod != nil && lifetime == warnOnlyLifetime && !i.Exact && !slices.ContainsFunc(audiences, i.isForeignAudience) {
		c.Kubernetes.WarnAfter = jwt.NewNumericDate(expiry)
		c.ExpiresAt = jwt.NewNumericDate(now.Add(i.grantedLifetime(extendedLifetime)))
	}
	if token, err = i.sign(c, sa); err != nil {
		return "", time.Time{}, err
	}
	// By this, what the token is used for is found in the audit log: its bearer
	// carries the same as authentication.kubernetes.io/credential-id.
	audit.Annotate(ctx, "authentication.kubernetes.io/issued-credential-id", authn.CredentialID(c.ID))
	return token, expiry, nil
}

// grantedLifetime is the lifetime that is granted for a requested one.
func (i *Issuer) grantedLifetime(life time.Duration) time.Duration {
	if i.Longest > 0 {
		return min(life, i.Longest)
	}
	return life
}

func (i *Issuer) isForeignAudience(audience string) bool {
	return !slices.Contains(i.audiences, audience)
}

// claimsOf say whose a token is, and what it is bound to.
func claimsOf(sa *core.ServiceAccount, bound Bound) kubernetesClaims {
	c := kubernetesClaims{Namespace: sa.Namespace, ServiceAccount: *referenceTo(sa)}
	if bound.Pod != nil {
		c.Pod = referenceTo(bound.Pod)
	}
	if bound.Secret != nil {
		c.Secret = referenceTo(bound.Secret)
	}
	if bound.Node != nil {
		c.Node = referenceTo(bound.Node)
	}
	return c
}

func referenceTo(obj metav1.Object) *reference {
	return &reference{Name: obj.GetName(), UID: string(obj.GetUID())}
}

// Legacy makes the token for a secret of sa. It never expires.
func (i *Issuer) Legacy(sa *core.ServiceAccount, secret string) (string, error) {
	return i.sign(legacyClaims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: legacyIssuer, Subject: core.ServiceAccountPrefix + sa.Namespace + ":" + sa.Name},
		Namespace:        sa.Namespace, Secret: secret, Account: sa.Name, AccountUID: string(sa.UID),
	}, sa)
}

func (i *Issuer) sign(c jwt.Claims, sa *core.ServiceAccount) (string, error) {
	unsigned := jwt.NewWithClaims(i.method, c)
	unsigned.Header["kid"] = i.keyID
	token, err := unsigned.SignedString(i.key)
	if err != nil {
		return "", fmt.Errorf("sign a token for service account %s/%s: %w", sa.Namespace, sa.Name, err)
	}
	return token, nil
}
