package serviceaccount

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestTokenRefused(t *testing.T) {
	hour := authenticationv1.TokenRequestSpec{}
	tests := map[string]struct {
		make func(t *testing.T, f *fixture) string
		want []string // audiences
		says string   // "" if the token is not for this authenticator
	}{
		"wrong signature": {says: "signature is invalid", make: func(t *testing.T, f *fixture) string {
			parts := strings.Split(f.token(t, hour, Bound{}), ".")
			other := strings.Split(f.token(t, hour, Bound{Pod: f.pod}), ".")
			return parts[0] + "." + other[1] + "." + parts[2]
		}},
		"another key of the same name": {says: "signature is invalid", make: func(t *testing.T, f *fixture) string {
			other := newFixture(t, rsaKey(t))
			other.issuer.keyID = f.issuer.keyID
			return other.token(t, hour, Bound{})
		}},
		"key of no name": {says: "signature is invalid", make: func(t *testing.T, f *fixture) string {
			other := newFixture(t, rsaKey(t))
			other.issuer.keyID = ""
			return other.token(t, hour, Bound{})
		}},
		"right key, another name": {says: `no key named "../../dev/null" for algorithm RS256`, make: func(t *testing.T, f *fixture) string {
			f.issuer.keyID = "../../dev/null"
			return f.token(t, hour, Bound{})
		}},
		"demands": {says: "has critical extensions (crit) that are not supported", make: func(t *testing.T, f *fixture) string {
			unsigned := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": testIssuer, "exp": start.Add(time.Hour).Unix()})
			unsigned.Header["crit"] = []string{"b64"}
			token, err := unsigned.SignedString(f.key)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}},
		"unknown key": {says: "for algorithm RS256", make: func(t *testing.T, f *fixture) string {
			return newFixture(t, rsaKey(t)).token(t, hour, Bound{})
		}},
		"no key of the algorithm": {says: "for algorithm ES256", make: func(t *testing.T, f *fixture) string {
			return newFixture(t, ecKey(t)).token(t, hour, Bound{})
		}},
		"expired": {says: "token is expired", make: func(t *testing.T, f *fixture) string {
			token := f.token(t, hour, Bound{})
			f.clock.SetTime(start.Add(time.Hour + leeway))
			return token
		}},
		"not yet valid": {says: "token is not valid yet", make: func(t *testing.T, f *fixture) string {
			token := f.token(t, hour, Bound{})
			f.clock.SetTime(start.Add(-leeway - time.Second))
			return token
		}},
		"other audience": {says: "token audiences", make: func(t *testing.T, f *fixture) string {
			return f.token(t, authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}}, Bound{})
		}},
		"audience not asked for": {says: "token audiences", want: []string{"vault"}, make: func(t *testing.T, f *fixture) string {
			return f.token(t, hour, Bound{})
		}},
		"alg none": {says: "signing method none is invalid", make: func(t *testing.T, f *fixture) string {
			parts := strings.Split(f.token(t, hour, Bound{}), ".")
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
		}},
		"HMAC with the public key": {says: "signing method HS256 is invalid", make: func(t *testing.T, f *fixture) string {
			der, _ := x509.MarshalPKIXPublicKey(f.key.Public())
			secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
			token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": testIssuer, "exp": start.Add(time.Hour).Unix()}).SignedString(secret)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}},
		"no expiry": {says: "exp claim is required", make: func(t *testing.T, f *fixture) string {
			token, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": testIssuer}).SignedString(f.key)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}},
		"subject of another": {says: "subject is not its service account", make: func(t *testing.T, f *fixture) string {
			token, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
				"iss": testIssuer, "sub": "system:admin", "exp": start.Add(time.Hour).Unix(),
				"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "web", "uid": "sa-1"}},
			}).SignedString(f.key)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}},
		"of a webhook": {says: "binding to a webhook configuration", make: func(t *testing.T, f *fixture) string {
			token, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
				"iss": testIssuer, "sub": "system:serviceaccount:shop:web", "aud": testIssuer, "exp": start.Add(time.Hour).Unix(),
				"kubernetes.io": map[string]any{
					"namespace": "shop", "serviceaccount": map[string]any{"name": "web", "uid": "sa-1"},
					"validatingwebhookconfiguration": map[string]any{"name": "hook", "uid": "hook-1"},
				},
			}).SignedString(f.key)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}},
		"no namespace": {says: "it lacks the name of a service account", make: func(t *testing.T, f *fixture) string {
			f.sa.Namespace = ""
			return f.token(t, hour, Bound{})
		}},
		"no account": {says: "it lacks the name of a service account", make: func(t *testing.T, f *fixture) string {
			f.sa.Name = ""
			return f.token(t, hour, Bound{})
		}},
		"service account gone": {says: "its service account web no longer exists", make: func(t *testing.T, f *fixture) string {
			delete(f.objects, "serviceaccounts/shop/web")
			return f.token(t, hour, Bound{})
		}},
		"service account made anew": {says: "was deleted and recreated", make: func(t *testing.T, f *fixture) string {
			token := f.token(t, hour, Bound{})
			f.sa.UID = "sa-2"
			return token
		}},
		"pod gone": {says: "its pod web-0 no longer exists", make: func(t *testing.T, f *fixture) string {
			delete(f.objects, "pods/shop/web-0")
			return f.token(t, hour, Bound{Pod: f.pod})
		}},
		"pod deleted a while ago": {says: "its pod web-0 has been deleted", make: func(t *testing.T, f *fixture) string {
			f.pod.DeletionTimestamp = &metav1.Time{Time: start.Add(-deletedLeeway - time.Second)}
			return f.token(t, hour, Bound{Pod: f.pod})
		}},
		"secret gone": {says: "its secret key no longer exists", make: func(t *testing.T, f *fixture) string {
			return f.token(t, hour, Bound{Secret: &core.Secret{ObjectMeta: meta("shop", "key", "secret-1")}})
		}},
		"another issuer": {make: func(t *testing.T, f *fixture) string {
			f.issuer.name = "https://elsewhere"
			return f.token(t, hour, Bound{})
		}},
		"no JWT":  {make: func(*testing.T, *fixture) string { return "some.opaque.token" }},
		"no dots": {make: func(*testing.T, *fixture) string { return "opaque" }},
	}
	key := rsaKey(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, key)
			user, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), test.make(t, f), test.want)
			if ok || user != nil {
				t.Fatalf("accepted as %+v", user)
			}
			switch {
			case test.says == "" && err != nil:
				t.Errorf("judged a token that is not ours: %v", err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("error is %v, want it to say %q", err, test.says)
			}
		})
	}
}

// TestClocksApart: a server accepts another server's token even if its own
// clock is a bit behind or ahead.
func TestClocksApart(t *testing.T) {
	f := newFixture(t, ecKey(t))
	token := f.token(t, authenticationv1.TokenRequestSpec{}, Bound{})
	for _, now := range []time.Time{start.Add(-leeway), start.Add(time.Hour + leeway - time.Second)} {
		f.clock.SetTime(now)
		if _, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), token, nil); !ok || err != nil {
			t.Errorf("at %s: ok=%v err=%v", now, ok, err)
		}
	}
}
