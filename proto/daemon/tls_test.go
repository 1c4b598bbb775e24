package daemon

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

// Who replaces a certificate by one that can't be served hears of it before the old one
// expires, and once, however many clients connect.
func TestAChangedCertificateThatCannotBeServed(t *testing.T) {
	dir := t.TempDir()
	cert, key, err := pki.ServingFiles("", "", dir, pki.Subject{CommonName: "server", DNSNames: []string{"localhost"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.ErrorLevel)
	clock := testclock.NewFakeClock(time.Now())
	served, err := (&TLSOptions{}).Serve(cert, key, nil, clock, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	anotherKeys, err := pki.SelfSigned(pki.Subject{CommonName: "renewed", Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		content []byte
		says    string
	}{{anotherKeys.Cert, "private key does not match"}, {good[:len(good)/2], "PEM"}, {good, ""}, {good[:len(good)/2], "PEM"}} {
		if err := os.WriteFile(cert, step.content, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			clock.Step(time.Minute)
			if _, err := served.GetCertificate(nil); err != nil {
				t.Fatal(err)
			}
		}
		var lines []string
		for _, entry := range logs.TakeAll() {
			lines = append(lines, entry.Message+" "+entry.ContextMap()["error"].(string))
		}
		said := strings.Join(lines, "\n")
		if len(lines) != min(1, len(step.says)) || !strings.Contains(said, step.says) {
			t.Errorf("%.40q: the log says %q, want one line with %q", step.content, said, step.says)
		}
	}
}

// TestACertificateThatExpiresInUse: a server says so when its clients begin to refuse it, once, however
// many they are, and again of a new certificate that is no better.
func TestACertificateThatExpiresInUse(t *testing.T) {
	began, dir := time.Now(), t.TempDir()
	cert, key := filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	renew := func(from time.Time) {
		pair, err := pki.SelfSigned(pki.Subject{CommonName: "server", Server: true}, from, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Save(cert, key); err != nil {
			t.Fatal(err)
		}
	}
	renew(began)
	core, logs := observer.New(zap.WarnLevel)
	clock := testclock.NewFakeClock(began)
	served, err := (&TLSOptions{}).Serve(cert, key, nil, clock, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		renew bool
		lines int
	}{{time.Minute, false, 0}, {2 * time.Hour, false, 1}, {3 * time.Hour, true, 0}, {5 * time.Hour, false, 1}, {30 * time.Hour, true, 0}} {
		clock.SetTime(began.Add(step.after))
		if step.renew {
			renew(clock.Now())
		}
		for range 3 {
			clock.Step(time.Second)
			if _, err := served.GetCertificate(nil); err != nil {
				t.Fatal(err)
			}
		}
		lines := logs.TakeAll()
		if len(lines) != step.lines || step.lines > 0 && !strings.Contains(lines[0].ContextMap()["error"].(string), "has expired at") {
			t.Errorf("after %v: %v, want %d lines", step.after, lines, step.lines)
		}
	}
}

func TestCipherSuites(t *testing.T) {
	var c tls.Config
	o := TLSOptions{CipherSuites: []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}
	want := []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	if err := o.Apply(&c); err != nil || !slices.Equal(c.CipherSuites, want) {
		t.Errorf("%x, %v; want %x", c.CipherSuites, err, want)
	}
	for _, name := range []string{"TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM", "CHACHA20_POLY1305", ""} {
		if err := (&TLSOptions{CipherSuites: []string{name}}).Validate(); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
