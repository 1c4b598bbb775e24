package trust

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/clientauth"
	"kctl/proto/pki"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newCA(t *testing.T, name string, lasts time.Duration) *pki.Pair {
	t.Helper()
	ca, err := pki.NewCA(name, now, lasts)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func authorities(t *testing.T, clock *testingclock.FakeClock, ca *pki.Pair) *pki.Authorities {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := pki.NewAuthorities("ca", file, clock)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func names(t *testing.T, bundle string) string {
	t.Helper()
	var out []string
	for rest := []byte(bundle); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return strings.Join(out, " ")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, cert.Subject.CommonName)
	}
}

func TestMerge(t *testing.T) {
	clock := testingclock.NewFakeClock(now)
	own, old := newCA(t, "own", 24*time.Hour), newCA(t, "old", time.Hour)
	p := &Publisher{
		Clients: authorities(t, clock, own), Proxies: authorities(t, clock, own), AllowedNames: []string{"front"},
		Headers: clientauth.CommonHeaderNames, Clock: clock,
	}
	first := p.mergedData(nil)
	if first[keyUsername] != `["X-Remote-User"]` || first[keyExtra] != `["X-Remote-Extra-"]` || first[keyNames] != `["front"]` ||
		names(t, first[keyClients]) != "own" {
		t.Errorf("published %v", first)
	}
	if !maps.Equal(p.mergedData(first), first) {
		t.Error("the right content was changed")
	}
	// Another server has written something else there.
	others := map[string]string{
		keyClients: string(old.Cert), keyNames: `["back"]`, keyUsername: `["X-User"]`, keyGroup: "rubbish", "more": "kept",
	}
	got := p.mergedData(others)
	if names(t, got[keyClients]) != "old own" || got[keyNames] != `["back","front"]` || got[keyUsername] != `["X-User","X-Remote-User"]` ||
		got[keyGroup] != `["X-Remote-Group"]` || got["more"] != "kept" || len(others) != 5 {
		t.Errorf("joined with another server's: %v", got)
	}
	clock.Step(2 * time.Hour)
	if got := p.mergedData(got); names(t, got[keyClients]) != "own" {
		t.Errorf("an expired authority stays: %s", names(t, got[keyClients]))
	}
	if got := p.mergedData(map[string]string{keyNames: "[]"}); got[keyNames] != "[]" {
		t.Errorf("another server lets any proxy in, and these may be shut out now: %v", got)
	}
}
