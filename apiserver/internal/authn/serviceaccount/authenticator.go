package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// deletedLeeway is how long a token works after the deletion of the object it
// is bound to began, so that a pod can shut down properly.
const deletedLeeway = time.Minute

// leeway is the tolerated difference between the clocks of servers that issue and
// check tokens; upstream's.
const leeway = time.Minute

// Objects finds the objects that tokens are bound to, as stored now. For a
// missing one it returns an apierrors.IsNotFound error.
type Objects interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error)
	Pod(ctx context.Context, namespace, name string) (*core.Pod, error)
	Secret(ctx context.Context, namespace, name string) (*core.Secret, error)
	Node(ctx context.Context, name string) (*core.Node, error)
	// TokenUsed records the day on which the token in a secret was used. If that
	// fails, the token is valid nevertheless.
	TokenUsed(ctx context.Context, secret *core.Secret, date string)
}

// methods exclude signing with a shared secret, and "none".
var methods = []string{"RS256", "ES256", "ES384", "ES512"}

// Authenticator checks tokens.
type Authenticator struct {
	Checks
	issuers []string
	parser  *jwt.Parser
	peek    *jwt.Parser
}

// Checks are what tokens are checked against.
type Checks struct {
	// Audiences are accepted if the caller names none: the API's.
	Audiences []string
	// Keys are those that a token may be signed with.
	Keys    []PublicKey
	Objects Objects
	Uses    *Uses
	Clock   clock.PassiveClock
}

// NewAuthenticator returns an Authenticator for tokens of the given issuers.
func NewAuthenticator(issuers []string, checks Checks) *Authenticator {
	return &Authenticator{
		Checks: checks, issuers: issuers,
		parser: newParser(checks.Clock, jwt.WithExpirationRequired()),
		peek:   jwt.NewParser(),
	}
}

func newParser(clock clock.PassiveClock, more ...jwt.ParserOption) *jwt.Parser {
	return jwt.NewParser(append(more,
		jwt.WithValidMethods(methods), jwt.WithTimeFunc(clock.Now), jwt.WithLeeway(leeway), jwt.WithIssuedAt())...)
}

// AuthenticateToken returns a token's user, and for which of the wanted
// audiences it is valid. For tokens of other issuers, ok is false and err nil.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string,
	wanted []string) (user *request.User, audiences []string, ok bool, err error) {
	if !a.hasKnownIssuer(token) {
		return nil, nil, false, nil
	}
	c, err := a.verify(token)
	if err != nil {
		return nil, nil, false, err
	}
	if len(wanted) == 0 {
		wanted = a.Audiences
	}
	for _, audience := range wanted {
		if slices.Contains(c.Audience, audience) {
			audiences = append(audiences, audience)
		}
	}
	if len(audiences) == 0 {
		return nil, nil, false, fmt.Errorf("token audiences %q are not among %q", []string(c.Audience), wanted)
	}
	if err := a.checkBoundObjects(ctx, c); err != nil {
		return nil, nil, false, err
	}
	a.countUse(ctx, c)
	return userOf(c), audiences, true, nil
}

// countUse counts tokens that live longer than was requested: those that should have
// been replaced apart from those of programs that read theirs again in time.
func (a *Authenticator) countUse(ctx context.Context, c *claims) {
	after := c.Kubernetes.WarnAfter
	if after == nil {
		return
	}
	if !a.Clock.Now().After(after.Time) {
		a.Uses.valid.Inc()
		return
	}
	a.Uses.stale.Inc()
	authn.AddRemark(ctx, authn.Remark{
		Key:   keyStale,
		Value: fmt.Sprintf("subject: %s, seconds after warning threshold: %.0f", c.Subject, a.Clock.Since(after.Time).Seconds()),
	})
}

// hasKnownIssuer checks a token's issuer without trusting anything else in it.
func (a *Authenticator) hasKnownIssuer(token string) bool {
	issuer := issuerOf(a.peek, token)
	return issuer != "" && slices.Contains(a.issuers, issuer)
}

func issuerOf(peek *jwt.Parser, token string) string {
	if strings.Count(token, ".") != 2 {
		return ""
	}
	var c jwt.RegisteredClaims
	if _, _, err := peek.ParseUnverified(token, &c); err != nil {
		return ""
	}
	return c.Issuer
}

// verify checks signature, times and form.
func (a *Authenticator) verify(token string) (*claims, error) {
	c := &claims{}
	_, err := a.parser.ParseWithClaims(token, c, a.candidates)
	if err != nil {
		return nil, fmt.Errorf("service account token: %w", err)
	}
	k := c.Kubernetes
	if k.Namespace == "" || k.ServiceAccount.Name == "" || k.ServiceAccount.UID == "" {
		return nil, errors.New("service account token: it lacks the name of a service account")
	}
	if c.Subject != core.ServiceAccountPrefix+k.Namespace+":"+k.ServiceAccount.Name {
		return nil, errors.New("service account token: its subject is not its service account")
	}
	if k.ValidatingWebhook != nil || k.MutatingWebhook != nil {
		return nil, errors.New("service account token: binding to a webhook configuration is not supported")
	}
	return c, nil
}

func (a *Authenticator) candidates(t *jwt.Token) (any, error) { return candidates(a.Keys, t) }

// candidates are the keys that a token may be signed with: the one that its header
// names, or all if it names none, as older issuers did.
func candidates(keys []PublicKey, t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("its header has critical extensions (crit) that are not supported") // RFC 7515, section 4.1.11
	}
	id, named := t.Header["kid"]
	var set jwt.VerificationKeySet
	for _, key := range keys {
		if method, err := methodOf(key.Key); err == nil && method.Alg() == t.Method.Alg() && (!named || id == "" || id == key.ID) {
			set.Keys = append(set.Keys, key.Key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("no key named %[2]q for algorithm %[1]s", t.Method.Alg(), id)
	}
	return set, nil
}

// checkBoundObjects checks that everything the token is bound to still exists and is the same.
func (a *Authenticator) checkBoundObjects(ctx context.Context, c *claims) error {
	k := c.Kubernetes
	sa, err := a.Objects.ServiceAccount(ctx, k.Namespace, k.ServiceAccount.Name)
	if err := a.checkReference("service account", k.ServiceAccount, sa, err); err != nil {
		return err
	}
	if k.Secret != nil {
		secret, err := a.Objects.Secret(ctx, k.Namespace, k.Secret.Name)
		if err := a.checkReference("secret", *k.Secret, secret, err); err != nil {
			return err
		}
	}
	if k.Pod != nil {
		pod, err := a.Objects.Pod(ctx, k.Namespace, k.Pod.Name)
		return a.checkReference("pod", *k.Pod, pod, err)
	}
	if k.Node != nil {
		node, err := a.Objects.Node(ctx, k.Node.Name)
		return a.checkReference("node", *k.Node, node, err)
	}
	return nil
}

func (a *Authenticator) checkReference(kind string, want reference, obj metav1.Object, err error) error {
	return checkReference(a.Clock, kind, want, obj, err)
}

func checkReference(clock clock.PassiveClock, kind string, want reference, obj metav1.Object, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("service account token: its %s %s no longer exists", kind, want.Name)
	}
	if err != nil {
		return fmt.Errorf("service account token: look up its %s %s: %w", kind, want.Name, err)
	}
	if string(obj.GetUID()) != want.UID {
		return fmt.Errorf("service account token: its %s %s was deleted and recreated", kind, want.Name)
	}
	if deleted := obj.GetDeletionTimestamp(); deleted != nil && clock.Now().After(deleted.Add(deletedLeeway)) {
		return fmt.Errorf("service account token: its %s %s has been deleted", kind, want.Name)
	}
	return nil
}

func userOf(c *claims) *request.User {
	k := c.Kubernetes
	user := &request.User{
		Username: c.Subject,
		UID:      k.ServiceAccount.UID,
		Groups:   []string{core.GroupServiceAccounts, core.GroupServiceAccounts + ":" + k.Namespace},
		Extra:    map[string]authenticationv1.ExtraValue{},
	}
	add := func(key, value string) {
		if value != "" {
			user.Extra[key] = authenticationv1.ExtraValue{value}
		}
	}
	authn.AddCredentialID(user, c.ID)
	if k.Pod != nil {
		add(extraPodName, k.Pod.Name)
		add(extraPodUID, k.Pod.UID)
	}
	if k.Node != nil {
		add(authn.ExtraNodeName, k.Node.Name)
		add(extraNodeUID, k.Node.UID)
	}
	return user
}
