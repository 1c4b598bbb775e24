package sni

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	testclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/config"
	"kctl/proto/pki"
)

// TestAChangedCertificateThatCannotBeShown: it is in the log, as with the default certificate: the old
// one goes on, and will expire.
func TestAChangedCertificateThatCannotBeShown(t *testing.T) {
	dir, clock := t.TempDir(), testclock.NewFakeClock(time.Now())
	cert, key := filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	pair, err := pki.SelfSigned(pki.Subject{CommonName: "a", DNSNames: []string{"a.test"}, Server: true}, clock.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Save(cert, key); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	ordinary := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	choose, err := ByName([]config.SNICertificate{{CertFile: cert, KeyFile: key}}, ordinary, clock, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cert, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		says  string
	}{{time.Minute, "PEM"}, {time.Minute, ""}, {time.Hour, "has expired at"}, {time.Hour, ""}} {
		clock.Step(step.after)
		if shown, err := choose(&tls.ClientHelloInfo{ServerName: "A.test."}); err != nil || shown == nil {
			t.Fatalf("%v, %v", shown, err)
		}
		var said []string
		for _, entry := range logs.TakeAll() {
			said = append(said, entry.ContextMap()["error"].(string))
		}
		if len(said) != min(1, len(step.says)) || !strings.Contains(strings.Join(said, ""), step.says) {
			t.Errorf("%q, want one line with %q", said, step.says)
		}
	}
}
