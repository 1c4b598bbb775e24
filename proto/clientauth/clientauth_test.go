package clientauth

import (
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"kctl/proto/pki"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func check(t *testing.T, user *authenticationv1.UserInfo, ok bool, err error, wantUser, wantErr string) {
	t.Helper()
	if ok != (wantUser != "") || ok && user.Username != wantUser {
		t.Errorf("user %+v (%v), want %q", user, ok, wantUser)
	}
	if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("error %v, want %q", err, wantErr)
	}
}

func newCA(t *testing.T) *pki.Pair {
	t.Helper()
	ca, err := pki.NewCA("test", start, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *pki.Pair, subject pki.Subject) *x509.Certificate {
	t.Helper()
	pair, err := ca.Issue(subject, start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf
}

func TestBearerToken(t *testing.T) {
	for header, want := range map[string]string{
		"": "", "Basic Zm9v": "", "Bearer": "", "Bearer ": "", "Bearer good": "good", " bearer good ": "good", "Bearer  good": "", "Bearer good more": "good",
	} {
		if got := BearerToken(http.Header{"Authorization": {header}}); got != want {
			t.Errorf("%q has the token %q, want %q", header, got, want)
		}
	}
}

// A certificate is good as long as its longest chain is.
func TestChainsValidUntil(t *testing.T) {
	until := func(hours time.Duration) *x509.Certificate {
		return &x509.Certificate{NotAfter: start.Add(hours * time.Hour)}
	}
	for name, test := range map[string]struct {
		chains [][]*x509.Certificate
		want   time.Duration
	}{
		"its own end":             {[][]*x509.Certificate{{until(2), until(5)}}, 2},
		"that of its authority":   {[][]*x509.Certificate{{until(5), until(9), until(2)}}, 2},
		"the second chain":        {[][]*x509.Certificate{{until(5), until(2)}, {until(5), until(4)}}, 4},
		"the first of two chains": {[][]*x509.Certificate{{until(5), until(4)}, {until(5), until(2)}}, 4},
	} {
		if got := chainsValidUntil(test.chains); !got.Equal(start.Add(test.want * time.Hour)) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
