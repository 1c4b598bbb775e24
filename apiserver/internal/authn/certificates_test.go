package authn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

// certificatesOf returns an authenticator by the authority's certificate, and the file that holds that.
func certificatesOf(t *testing.T, authority *pki.Pair, clock *testingclock.FakePassiveClock,
	registry *prometheus.Registry) (certificates *Certificates, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, authority, start)
	authorities, err := pki.NewAuthorities("authority", file, clock)
	if err != nil {
		t.Fatal(err)
	}
	return NewCertificates(authorities, clock, registry), file
}

func write(t *testing.T, file string, authority *pki.Pair, at time.Time) {
	t.Helper()
	if err := errors.Join(os.WriteFile(file, authority.Cert, 0o600), os.Chtimes(file, at, at)); err != nil {
		t.Fatal(err)
	}
}

func TestCertificates(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	authority, stranger := newCA(t), newCA(t)
	registry := prometheus.NewRegistry()
	certificates, _ := certificatesOf(t, authority, clock, registry)
	client := pki.Subject{CommonName: "jane", Organization: []string{"dev", "ops"}, Client: true}
	tests := map[string]struct {
		cert *x509.Certificate
		at   time.Duration
		user string
		err  string
	}{
		"none":              {},
		"good":              {cert: issue(t, authority, client), user: "jane"},
		"other authority":   {cert: issue(t, stranger, client), err: "unknown authority"},
		"expired":           {cert: issue(t, authority, client), at: 2 * time.Hour, err: "expired"},
		"for a server":      {cert: issue(t, authority, pki.Subject{CommonName: "jane", Server: true}), err: "incompatible key usage"},
		"without user name": {cert: issue(t, authority, pki.Subject{Client: true}), err: "no common name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clock.SetTime(start.Add(test.at))
			r := get("")
			r.TLS = &tls.ConnectionState{}
			if test.cert != nil {
				r.TLS.PeerCertificates = []*x509.Certificate{test.cert}
			}
			for range 2 { // the second time from the cache
				user, ok, err := certificates.Authenticate(r)
				check(t, user, ok, err, test.user, test.err)
				if ok && !slices.Equal(user.Groups, []string{"dev", "ops"}) {
					t.Errorf("groups %v", user.Groups)
				}
			}
		})
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if left := families[0].Metric[0].Histogram; left.GetSampleCount() != 2 || left.GetSampleSum() != 2*time.Hour.Seconds() {
		t.Errorf("%s: %v, not the good one's hour twice", families[0].GetName(), left)
	}
}

func TestCertificatesOfANewAuthority(t *testing.T) {
	old, new := newCA(t), newCA(t)
	clock := testingclock.NewFakePassiveClock(start)
	certificates, file := certificatesOf(t, old, clock, prometheus.NewRegistry())
	r := get("")
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{issue(t, old, pki.Subject{CommonName: "jane", Client: true})}}
	if _, ok, err := certificates.Authenticate(r); !ok {
		t.Fatalf("not accepted: %v", err)
	}
	write(t, file, new, start.Add(time.Minute))
	clock.SetTime(start.Add(4 * time.Second)) // as long as upstream's tests wait
	if _, ok, err := certificates.Authenticate(r); ok || err == nil {
		t.Error("a certificate of the old authority was accepted after the new one was there")
	}
}

// TestCertificatesOfAnExpiredAuthority: a cached certificate is valid no longer
// than its CA.
func TestCertificatesOfAnExpiredAuthority(t *testing.T) {
	authority, err := pki.NewCA("test", start, 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(start)
	certificates, _ := certificatesOf(t, authority, clock, prometheus.NewRegistry())
	r := get("")
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{issue(t, authority, pki.Subject{CommonName: "jane", Client: true})}}
	user, ok, err := certificates.Authenticate(r)
	check(t, user, ok, err, "jane", "")
	clock.SetTime(start.Add(31 * time.Minute))
	user, ok, err = certificates.Authenticate(r)
	check(t, user, ok, err, "", "expired")
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
