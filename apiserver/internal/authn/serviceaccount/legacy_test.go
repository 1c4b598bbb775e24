package serviceaccount

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authn"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

func TestTokensOfSecrets(t *testing.T) {
	f := newFixture(t, ecKey(t))
	legacy := NewLegacy(f.legacyChecks())
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
	automatic := &core.ServiceAccount{ObjectMeta: f.sa.ObjectMeta, Secrets: []core.ObjectReference{{Name: "web-token"}}}
	for name, test := range map[string]struct {
		token  string
		change func(s *core.Secret)
		err    string
	}{
		"good":                    {token, nil, ""},
		"unsigned":                {unsigned, nil, "signing method none is invalid"},
		"signed by somebody else": {other, nil, "for algorithm ES256"},
		"secret deleted":          {token, func(s *core.Secret) { s.DeletionTimestamp = &metav1.Time{Time: start} }, "has been deleted"},
		"secret with another":     {token, func(s *core.Secret) { s.Data = map[string][]byte{"token": []byte("another")} }, "contains a different token"},
		"secret of another type":  {token, func(s *core.Secret) { s.Type = corev1.SecretTypeOpaque }, "contains a different token"},
		"secret out of use": {token, func(s *core.Secret) { s.Labels = map[string]string{InvalidSince: "2026-01-01"} },
			"the token in secret shop/web-token for service account shop/web has been marked invalid. Use tokens"},
		"made without being asked for": {token, func(*core.Secret) { f.objects["serviceaccounts/shop/web"] = automatic }, ""},
		"secret gone":                  {token, func(s *core.Secret) { delete(f.objects, "secrets/shop/web-token") }, "not found"},
		"account made anew": {token, func(*core.Secret) {
			f.objects["serviceaccounts/shop/web"] = &core.ServiceAccount{ObjectMeta: meta("shop", "web", "sa-2")}
		}, "was deleted and recreated"},
		"account gone": {token, func(*core.Secret) { delete(f.objects, "serviceaccounts/shop/web") }, "no longer exists"},
		"account deleted": {token, func(*core.Secret) {
			f.objects["serviceaccounts/shop/web"] = &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "sa-1", DeletionTimestamp: &metav1.Time{Time: start},
			}}
		}, "has been deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &core.Secret{
				ObjectMeta: meta("shop", "web-token", "s-1"), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token)},
			}
			f.objects["secrets/shop/web-token"], f.objects["serviceaccounts/shop/web"] = secret, f.sa
			if test.token == unsigned || test.token == other {
				secret.Data["token"] = []byte(test.token) // it stays invalid
			}
			if test.change != nil {
				test.change(secret)
			}
			user, _, ok, err := legacy.AuthenticateToken(t.Context(), test.token, nil)
			if ok != (test.err == "") || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("%+v %v, want %q", user, err, test.err)
			}
			if used := secret.Labels[LastUsed]; (used == Date(start)) != (ok || name == "secret out of use") {
				t.Errorf("used %q", used)
			}
			if ok && (user.Username != "system:serviceaccount:shop:web" || user.UID != "sa-1" || len(user.Groups) != 2) {
				t.Errorf("%+v", user)
			}
		})
	}
	for name, want := range map[string]float64{
		"legacy_tokens": 2, "legacy_manual_token_uses": 1, "legacy_auto_token_uses": 1, "invalid_legacy_auto_token_uses": 1,
	} {
		if got := f.count(t, name); got != want {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
	f.objects["serviceaccounts/shop/web"] = f.sa
	f.objects["secrets/shop/web-token"] = &core.Secret{
		ObjectMeta: meta("shop", "web-token", "s-1"), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token)},
	}
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

// TestUseAtMidnight: servers whose clocks differ a little don't change the date back and
// forth with every request.
func TestUseAtMidnight(t *testing.T) {
	f := newFixture(t, ecKey(t))
	token, err := f.issuer.Legacy(f.sa, "web-token")
	if err != nil {
		t.Fatal(err)
	}
	tomorrow := Date(start.Add(24 * time.Hour)) // as another server has written
	for written, want := range map[string]string{tomorrow: tomorrow, Date(start.Add(-24 * time.Hour)): Date(start), Date(start.Add(48 * time.Hour)): Date(start)} {
		secret := &core.Secret{
			ObjectMeta: meta("shop", "web-token", "s-1"), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token)},
		}
		secret.Labels = map[string]string{LastUsed: written}
		f.objects["secrets/shop/web-token"] = secret
		if _, _, ok, err := NewLegacy(f.legacyChecks()).AuthenticateToken(t.Context(), token, nil); !ok || secret.Labels[LastUsed] != want {
			t.Errorf("%s became %s, want %s: %v", written, secret.Labels[LastUsed], want, err)
		}
	}
}

// count is a counter of used tokens.
func (f *fixture) count(t *testing.T, name string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "serviceaccount_"+name+"_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// TestWarnings: using an automatically generated token causes a warning, even
// if the token is cached.
func TestWarnings(t *testing.T) {
	f := newFixture(t, ecKey(t))
	token, err := f.issuer.Legacy(f.sa, "web-token")
	if err != nil {
		t.Fatal(err)
	}
	f.sa.Secrets = []core.ObjectReference{{Name: "web-token"}}
	f.objects["secrets/shop/web-token"] = &core.Secret{
		ObjectMeta: meta("shop", "web-token", "s-1"), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token)},
	}
	cached := authn.NewCached(NewLegacy(f.legacyChecks()), time.Minute, f.clock)
	for range 2 {
		warnings := &request.Warnings{}
		if _, _, ok, err := cached.AuthenticateToken(request.With(t.Context(), &request.Arrival{Warnings: warnings}), token, nil); !ok {
			t.Fatal(err)
		}
		if got := warnings.All(); len(got) != 1 ||
			got[0] != "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens." {
			t.Errorf("warned of %q", got)
		}
	}
	if got := f.count(t, "legacy_tokens"); got != 1 {
		t.Errorf("counted %g times", got)
	}
}
