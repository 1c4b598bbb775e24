package serviceaccount

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

func TestTokensOfSecrets(t *testing.T) {
	f := newFixture(t, ecKey(t))
	legacy := NewLegacy([]string{"api"}, f.authenticator.keys, f.objects, f.clock)
	token, err := f.issuer.Legacy(f.sa, "web-token")
	if err != nil {
		t.Fatal(err)
	}
	none := jwt.NewWithClaims(jwt.SigningMethodNone, legacyClaims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: legacyIssuer, Subject: "system:serviceaccount:shop:web"},
		Namespace:        "shop", Secret: "web-token", Account: "web", AccountUID: "sa-1",
	})
	unsigned, err := none.SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newFixture(t, ecKey(t)).issuer.Legacy(f.sa, "web-token")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		token  string
		change func(s *core.Secret)
		err    string
	}{
		"good":                    {token, nil, ""},
		"unsigned":                {unsigned, nil, "signing method none is invalid"},
		"signed by somebody else": {other, nil, "signature is invalid"},
		"secret deleted":          {token, func(s *core.Secret) { s.DeletionTimestamp = &metav1.Time{Time: start} }, "has been deleted"},
		"secret with another":     {token, func(s *core.Secret) { s.Data = map[string][]byte{"token": []byte("another")} }, "holds another one"},
		"secret of another type":  {token, func(s *core.Secret) { s.Type = corev1.SecretTypeOpaque }, "holds another one"},
		"secret out of use":       {token, func(s *core.Secret) { s.Labels = map[string]string{invalidSince: "2026-01-01"} }, "invalid since 2026-01-01"},
		"secret gone":             {token, func(s *core.Secret) { delete(f.objects, "secrets/shop/web-token") }, "not found"},
		"account made anew": {token, func(*core.Secret) {
			f.objects["serviceaccounts/shop/web"] = &core.ServiceAccount{ObjectMeta: meta("shop", "web", "sa-2")}
		}, "another one has its name"},
		"account gone": {token, func(*core.Secret) { delete(f.objects, "serviceaccounts/shop/web") }, "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &core.Secret{ObjectMeta: meta("shop", "web-token", "s-1"), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token)}}
			f.objects["secrets/shop/web-token"], f.objects["serviceaccounts/shop/web"] = secret, f.sa
			if test.token == unsigned || test.token == other {
				secret.Data["token"] = []byte(test.token) // even then
			}
			if test.change != nil {
				test.change(secret)
			}
			user, _, ok, err := legacy.AuthenticateToken(t.Context(), test.token, nil)
			if ok != (test.err == "") || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("%+v %v, want %q", user, err, test.err)
			}
			if used := secret.Labels[LastUsed]; (used == Date(start)) != ok {
				t.Errorf("used %q", used)
			}
			if ok && (user.Username != "system:serviceaccount:shop:web" || user.UID != "sa-1" || len(user.Groups) != 2) {
				t.Errorf("%+v", user)
			}
		})
	}
	f.objects["serviceaccounts/shop/web"] = f.sa
	f.objects["secrets/shop/web-token"] = &core.Secret{ObjectMeta: meta("shop", "web-token", "s-1"), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token)}}
	f.clock.SetTime(start.Add(10 * 365 * 24 * time.Hour))
	if _, _, ok, err := legacy.AuthenticateToken(t.Context(), token, nil); !ok {
		t.Errorf("it ran out: %v", err)
	}
	if _, _, ok, err := legacy.AuthenticateToken(t.Context(), token, []string{"vault"}); ok || err == nil {
		t.Errorf("it is for vault too: %v", err)
	}
	if _, _, ok, err := f.authenticator.AuthenticateToken(t.Context(), token, nil); ok || err != nil {
		t.Errorf("it passes for a bound token: %v", err)
	}
}
