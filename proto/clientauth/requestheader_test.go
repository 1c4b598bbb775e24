package clientauth

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

func TestRequestHeader(t *testing.T) {
	authority, stranger := newCA(t), newCA(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, authority.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(start)
	authorities, err := pki.NewAuthorities("proxies", file, clock)
	if err != nil {
		t.Fatal(err)
	}
	names := HeaderNames{
		Username: []string{"X-Remote-User", "X-User"}, UID: []string{"X-Remote-Uid"}, Group: []string{"X-Remote-Group"},
		ExtraPrefix: []string{"X-Remote-Extra-"},
	}
	proxy := func(name string, by *pki.Pair) *x509.Certificate {
		return issue(t, by, pki.Subject{CommonName: name, Client: true})
	}
	some, anybody := NewRequestHeader(authorities, []string{"front"}, names, clock), NewRequestHeader(authorities, nil, names, clock)
	for name, test := range map[string]struct {
		by   *RequestHeader
		cert *x509.Certificate
		user string // in the headers
		want string
		err  string
	}{
		"a proxy":                    {some, proxy("front", authority), "jane", "jane", ""},
		"any proxy":                  {anybody, proxy("back", authority), "jane", "jane", ""},
		"another proxy":              {some, proxy("back", authority), "jane", "", "not in --requestheader-allowed-names"},
		"a proxy of a stranger's":    {some, proxy("front", stranger), "jane", "", "unknown authority"},
		"no certificate":             {some, nil, "root", "", ""},
		"a proxy that names nobody":  {some, proxy("front", authority), "", "", ""},
		"a proxy that names a space": {some, proxy("front", authority), " ", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Remote-User", test.user)
			r.TLS = &tls.ConnectionState{}
			if test.cert != nil {
				r.TLS.PeerCertificates = []*x509.Certificate{test.cert}
			}
			for range 2 {
				user, ok, err := test.by.Authenticate(r)
				check(t, user, ok, err, test.want, test.err)
			}
		})
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{proxy("front", authority)}}
	r.Header = http.Header{
		"X-User": {"jane"}, "X-Remote-Uid": {"7"}, "X-Remote-Group": {"a", "", "b"},
		"X-Remote-Extra-Acme.com%2fproject": {"x", "y"}, "X-Remote-Extra-Odd%zz": {"z"}, "X-Remote": {"no"},
	}
	user, ok, err := some.Authenticate(r)
	if err != nil || !ok || user.Username != "jane" || user.UID != "7" || !slices.Equal(user.Groups, []string{"a", "b"}) ||
		!slices.Equal(user.Extra["acme.com/project"], []string{"x", "y"}) || len(user.Extra) != 2 {
		t.Errorf("%+v %v", user, err)
	}
	// A server behind may take them for the others (CGI).
	for _, name := range []string{"X_user", "X.user", "X_Remote-Uid", "X_remote_extra_a", "X~remote.Extra!a"} {
		r.Header[name] = []string{"root"}
	}
	names.Remove(r.Header)
	if len(r.Header) != 1 || r.Header.Get("X-Remote") == "" {
		t.Errorf("left after authentication: %v", r.Header)
	}
}

// What a proxy passes on says neither who the client is nor who it wants to be, in any spelling
// that a server behind may take for that; everything else stays.
func TestRemoveClaims(t *testing.T) {
	header := http.Header{}
	for _, name := range []string{
		"Authorization", "X-Remote-User", "X_REMOTE_USER", "x.remote.group", "X-Remote-Uid", "X-Remote-Extra-Zone", "X_Remote_Extra_",
		"Impersonate-User", "IMPERSONATE_GROUP", "impersonate.extra.a", "Impersonate-",
	} {
		header[name] = []string{"root"}
	}
	stays := []string{"X-Remote-Users", "X-Remote-Use", "X-Remote-Extr", "X0Remote-User", "X9Remote-User", "XARemote-User", "XzRemote-User", "XaRemote-User",
		"XZRemote-User", "Impersonate", "Cookie"}
	for _, name := range stays {
		header[name] = []string{"root"}
	}
	RemoveClaims(header)
	if left := slices.Sorted(maps.Keys(header)); !slices.Equal(left, slices.Sorted(slices.Values(stays))) {
		t.Errorf("left is %q", left)
	}
}
