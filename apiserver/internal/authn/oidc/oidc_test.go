package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// issuer is an OpenID Connect issuer that serves over TLS.
type issuer struct {
	*httptest.Server
	ca    []byte
	key   *rsa.PrivateKey
	keyID string
	down  atomic.Bool
	asked atomic.Int32 // requests for the discovery document
	asks  func()       // called by such a request
	keys  atomic.Int32 // requests for the keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{asks: func() {}}
	i.rotate(t, "first")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		i.asks()
		if i.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.keys.Add(1)
		encode := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.keyID,
			"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes()),
		}}})
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	i.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	return i
}

// rotate gives the issuer another key.
func (i *issuer) rotate(t *testing.T, id string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.key, i.keyID = key, id
}

// sign makes a token of the issuer's, with claims added or changed.
func (i *issuer) sign(t *testing.T, more jwt.MapClaims) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": i.URL, "aud": "kctl", "sub": "jane", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix()}
	for name, value := range more {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = i.keyID
	return signed(t, token, i.key)
}

func signed(t *testing.T, token *jwt.Token, key any) string {
	t.Helper()
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (i *issuer) authenticator(t *testing.T, change ...func(*Options)) (*Authenticator, *testingclock.FakePassiveClock) {
	t.Helper()
	clock := testingclock.NewFakePassiveClock(now)
	o := Options{
		IssuerURL: i.URL, Clients: []string{"kctl"}, Authorities: i.ca, UsernameClaim: "sub",
		SigningAlgorithms: []string{"RS256"}, Audiences: []string{"api"}, Clock: clock,
	}
	for _, c := range change {
		c(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.client.CloseIdleConnections)
	return a, clock
}

type result struct {
	user   string
	groups []string
	err    string // "" without a user: not its token
}

func (i *issuer) check(t *testing.T, a *Authenticator, token string, want result) {
	t.Helper()
	user, audiences, ok, err := a.AuthenticateToken(t.Context(), token, nil)
	if ok != (want.user != "") || (err != nil) != (want.err != "") || err != nil && !strings.Contains(err.Error(), want.err) {
		t.Fatalf("%+v %v %v, want %+v", user, ok, err, want)
	}
	if !ok {
		return
	}
	if name := strings.Replace(user.Username, i.URL, "ISSUER", 1); name != want.user || !slices.Equal(user.Groups, want.groups) ||
		!slices.Equal(audiences, []string{"api"}) {
		t.Errorf("%s in %v for %v, want %+v", name, user.Groups, audiences, want)
	}
}

// until waits until the token is valid, or no longer is.
func until(t *testing.T, a *Authenticator, token string, good bool) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("the token is valid: %v", good), func() bool {
		_, _, ok, _ := a.AuthenticateToken(t.Context(), token, nil)
		return ok == good
	})
}

func TestClaims(t *testing.T) {
	i := newIssuer(t)
	email := func(o *Options) { o.UsernameClaim = "email" }
	groups := func(o *Options) { o.GroupsClaim, o.GroupsPrefix, o.UsernamePrefix = "groups", "oidc:", "-" }
	required := func(o *Options) { o.RequiredClaims = map[string]string{"tenant": "blue"} }
	for name, test := range map[string]struct {
		change func(*Options)
		claims jwt.MapClaims
		want   result
	}{
		"default prefix":          {nil, nil, result{user: "ISSUER#jane"}},
		"own prefix":              {func(o *Options) { o.UsernamePrefix = "id:" }, nil, result{user: "id:jane"}},
		"no prefix":               {func(o *Options) { o.UsernamePrefix = "-" }, nil, result{user: "jane"}},
		"groups":                  {groups, jwt.MapClaims{"groups": []string{"a", "b"}}, result{user: "jane", groups: []string{"oidc:a", "oidc:b"}}},
		"one group":               {groups, jwt.MapClaims{"groups": "a"}, result{user: "jane", groups: []string{"oidc:a"}}},
		"no group":                {groups, nil, result{user: "jane"}},
		"groups that are numbers": {groups, jwt.MapClaims{"groups": []int{1}}, result{err: "neither a string nor a list"}},
		"distributed groups": {groups, jwt.MapClaims{
			"_claim_names": map[string]string{"groups": "more"}, "_claim_sources": map[string]any{"more": map[string]string{"endpoint": "https://more.test"}},
		}, result{err: "distributed claim, which is not supported"}},
		"other distributed claims": {groups, jwt.MapClaims{
			"_claim_names": map[string]string{"roles": "more"}, "_claim_sources": map[string]any{"more": map[string]string{"endpoint": "https://more.test"}},
		}, result{user: "jane"}},
		"email":                     {email, jwt.MapClaims{"email": "jane@test", "email_verified": true}, result{user: "jane@test"}},
		"email of nobody":           {email, jwt.MapClaims{"email": "jane@test", "email_verified": false}, result{err: "has not been verified"}},
		"email verified in words":   {email, jwt.MapClaims{"email": "jane@test", "email_verified": "true"}, result{err: "not true or false"}},
		"email of no opinion":       {email, jwt.MapClaims{"email": "jane@test"}, result{user: "jane@test"}},
		"no user name":              {email, nil, result{err: `claim "email" is missing`}},
		"empty user name":           {email, jwt.MapClaims{"email": ""}, result{err: "is empty"}},
		"user name that is null":    {email, jwt.MapClaims{"email": json.RawMessage("null")}, result{err: "not a string"}},
		"required claim":            {required, jwt.MapClaims{"tenant": "blue"}, result{user: "ISSUER#jane"}},
		"required claim missing":    {required, nil, result{err: `claim "tenant" is missing`}},
		"required claim of another": {required, jwt.MapClaims{"tenant": "red"}, result{err: "a different value"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change == nil {
				test.change = func(*Options) {}
			}
			a, _ := i.authenticator(t, test.change)
			i.check(t, a, i.sign(t, test.claims), test.want)
		})
	}
}

// TestTokensAreNamed: a user's extra fields name the token by its id (KEP-2799).
func TestTokensAreNamed(t *testing.T) {
	i := newIssuer(t)
	a, _ := i.authenticator(t)
	for name, test := range map[string]struct {
		id   any
		want string
	}{
		"an id":       {"7", "map[authentication.kubernetes.io/credential-id:[JTI=7]]"},
		"an empty id": {"", "map[]"},
		"no id":       {nil, "map[]"},
		"a number":    {7, "map[]"},
	} {
		user, _, ok, err := a.AuthenticateToken(t.Context(), i.sign(t, jwt.MapClaims{"jti": test.id}), nil)
		if err != nil || !ok {
			t.Fatalf("%s: %v %v", name, ok, err)
		}
		if got := fmt.Sprint(user.Extra); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestForgeries(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	a, _ := i.authenticator(t)
	stranger := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": i.URL, "aud": "kctl", "sub": "root", "exp": now.Add(time.Hour).Unix()})
	stranger.Header["kid"] = i.keyID
	none := jwt.NewWithClaims(jwt.SigningMethodNone, stranger.Claims)
	// The public key, which everybody knows, used as the secret of an HMAC.
	confused := jwt.NewWithClaims(jwt.SigningMethodHS256, stranger.Claims)
	confused.Header["kid"] = i.keyID
	good := i.sign(t, nil)
	parts := strings.Split(good, ".")
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + i.URL + `","aud":"kctl","sub":"root","exp":` + "9999999999}"))
	for name, test := range map[string]struct {
		token string
		want  result
	}{
		"good":                {good, result{user: "ISSUER#jane"}},
		"another issuer":      {other.sign(t, nil), result{}},
		"not a JWT":           {"abc", result{}},
		"three empty parts":   {"..", result{}},
		"claimed issuer":      {other.sign(t, jwt.MapClaims{"iss": i.URL}), result{err: "oidc:"}},
		"another key":         {signed(t, stranger, other.key), result{err: "signature"}},
		"alg none":            {signed(t, none, jwt.UnsafeAllowNoneSignatureType), result{err: "oidc:"}},
		"alg HS256":           {signed(t, confused, i.key.N.Bytes()), result{err: "oidc:"}},
		"another payload":     {parts[0] + "." + payload + "." + parts[2], result{err: "signature"}},
		"no signature":        {parts[0] + "." + parts[1] + ".", result{err: "oidc:"}},
		"another audience":    {i.sign(t, jwt.MapClaims{"aud": "shop"}), result{err: "audience"}},
		"among audiences":     {i.sign(t, jwt.MapClaims{"aud": []string{"shop", "kctl"}}), result{user: "ISSUER#jane"}},
		"expired":             {i.sign(t, jwt.MapClaims{"exp": now.Add(-time.Second).Unix()}), result{err: "expired"}},
		"never expires":       {i.sign(t, jwt.MapClaims{"exp": nil}), result{err: "expired"}},
		"not valid yet":       {i.sign(t, jwt.MapClaims{"nbf": now.Add(time.Hour).Unix()}), result{err: "before"}},
		"valid in a moment":   {i.sign(t, jwt.MapClaims{"nbf": now.Add(50 * time.Second).Unix()}), result{user: "ISSUER#jane"}},
		"valid soon":          {i.sign(t, jwt.MapClaims{"nbf": now.Add(2 * time.Minute).Unix()}), result{err: "before"}},
		"algorithm not asked": {signed(t, jwt.NewWithClaims(jwt.SigningMethodRS512, stranger.Claims), i.key), result{err: "oidc:"}},
	} {
		t.Run(name, func(t *testing.T) { i.check(t, a, test.token, test.want) })
	}
}

func TestNewKeysOfTheIssuer(t *testing.T) {
	i := newIssuer(t)
	a, _ := i.authenticator(t)
	old := i.sign(t, nil)
	i.check(t, a, old, result{user: "ISSUER#jane"})
	i.rotate(t, "second")
	// The keys are stored a moment after those who waited for them got their
	// answer.
	until(t, a, i.sign(t, nil), true)
	until(t, a, old, false)
	i.check(t, a, old, result{err: "signature"})
	if i.asked.Load() != 1 {
		t.Errorf("discovery was asked for %d times", i.asked.Load())
	}
}

// Anybody can send unknown key ids; they must not cause a request to the issuer
// each.
func TestTokensOfStrangersAreNoHammer(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	a, clock := i.authenticator(t)
	for n := range 100 {
		other.keyID = fmt.Sprint("made up ", n)
		if _, _, ok, err := a.AuthenticateToken(t.Context(), other.sign(t, jwt.MapClaims{"iss": i.URL}), nil); ok || err == nil {
			t.Fatalf("a stranger's token was taken: %v %v", ok, err)
		}
	}
	if asked := i.keys.Load(); asked == 0 || asked > maxRequestBurst {
		t.Errorf("100 tokens had the issuer asked for its keys %d times", asked)
	}
	i.rotate(t, "second")
	clock.SetTime(now.Add(time.Second))
	i.check(t, a, i.sign(t, nil), result{user: "ISSUER#jane"})
}

func TestIssuerThatIsDown(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	a, clock := i.authenticator(t)
	token := i.sign(t, nil)
	i.check(t, a, token, result{err: "503"})
	i.check(t, a, token, result{err: "a moment ago"})
	i.down.Store(false)
	if i.check(t, a, token, result{err: "a moment ago"}); i.asked.Load() != 1 {
		t.Errorf("an issuer that was down was asked %d times", i.asked.Load())
	}
	clock.SetTime(now.Add(retryInterval))
	i.check(t, a, token, result{user: "ISSUER#jane"})
}

// An issuer that never answers takes all the time that a request may take. Those who
// have waited for that must not ask again, one after the other.
func TestIssuerThatTakesLong(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	a, clock := i.authenticator(t)
	i.asks = func() { clock.SetTime(clock.Now().Add(requestTimeout)) }
	token := i.sign(t, nil)
	i.check(t, a, token, result{err: "503"})
	if i.check(t, a, token, result{err: "a moment ago"}); i.asked.Load() != 1 {
		t.Errorf("it was asked %d times", i.asked.Load())
	}
}

// TestNobodyWaitsForAnIssuerLongerThanItsRequest: anyone can make a token that names an issuer which
// does not answer.
func TestNobodyWaitsForAnIssuerLongerThanItsRequest(t *testing.T) {
	i := newIssuer(t)
	a, _ := i.authenticator(t)
	asked, mayAnswer := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(mayAnswer) })
	defer answer()
	i.asks = func() { close(asked); <-mayAnswer }
	token := i.sign(t, nil)
	gone, leave := context.WithCancel(t.Context())
	var canceled atomic.Int32
	for range 2 {
		go func() {
			if _, _, _, err := a.AuthenticateToken(gone, token, nil); err != nil && strings.Contains(err.Error(), context.Canceled.Error()) {
				canceled.Add(1)
			}
		}()
	}
	<-asked
	leave()
	eventually.Holds(t, "those whose requests have ended don't wait for the issuer", func() bool { return canceled.Load() == 2 })
	answer()
	if i.check(t, a, token, result{user: "ISSUER#jane"}); i.asked.Load() != 1 {
		t.Errorf("it was asked %d times", i.asked.Load())
	}
}

// Google's tokens may name their issuer without the scheme (OpenID Connect Core 1.0,
// section 15.6.2).
func TestIssuerWithoutAScheme(t *testing.T) {
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"accounts.google.com"}`))
	if got := issuerOf("e30." + payload + ".e30"); got != "https://accounts.google.com" {
		t.Errorf("the issuer is %q", got)
	}
}

func TestIssuerOfAnotherAuthority(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	if _, err := New(Options{Authorities: []byte("-----BEGIN CERTIFICATE-----\n")}); err == nil {
		t.Error("a CA file without a certificate was accepted")
	}
	// httptest servers share their certificate, which the host's CAs don't know.
	a, _ := i.authenticator(t, func(o *Options) { o.Authorities = nil })
	i.check(t, a, i.sign(t, nil), result{err: "certificate"})
	a, _ = i.authenticator(t, func(o *Options) { o.IssuerURL = strings.Replace(other.URL, "https:", "http:", 1) })
	if _, err := a.discoverVerifier(t.Context()); err == nil || !strings.Contains(err.Error(), "only https is supported") {
		t.Errorf("asked without TLS: %v", err)
	}
}

// TestDiscoveryElsewhere: the discovery document is at another URL than the
// issuer's, and still about the issuer.
func TestDiscoveryElsewhere(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		issuer := i.URL
		if r.URL.Path != "/tenant/discovery" {
			issuer = "https://another.test"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": issuer, "jwks_uri": i.URL + "/keys"})
	}))
	t.Cleanup(elsewhere.Close)
	a, _ := i.authenticator(t, func(o *Options) {
		o.DiscoveryURL, o.Clients = elsewhere.URL+"/tenant/discovery", []string{"first", "second"}
	})
	i.check(t, a, i.sign(t, jwt.MapClaims{"aud": "second"}), result{user: "ISSUER#jane"})
	i.check(t, a, i.sign(t, jwt.MapClaims{"aud": "third"}), result{err: `expected audience in ["first" "second"] got ["third"]`})
	a, _ = i.authenticator(t, func(o *Options) { o.DiscoveryURL = elsewhere.URL + "/of/another" })
	i.check(t, a, i.sign(t, nil), result{err: "did not match the issuer URL returned by provider"})
}
