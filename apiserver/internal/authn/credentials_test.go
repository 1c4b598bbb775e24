package authn

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/request"
	"kctl/proto/pki"
)

func TestOverlap(t *testing.T) {
	one, two := newCA(t), newCA(t)
	if Overlap(one.Cert, two.Cert) || !Overlap(slices.Concat(two.Cert, one.Cert), one.Cert) {
		t.Error("the overlap of two files is wrong")
	}
}

func TestRemoveTokens(t *testing.T) {
	header := http.Header{"Authorization": {"Bearer good"}, "Accept": {"*/*"}}
	if RemoveTokens(header); len(header) != 1 {
		t.Errorf("handlers see %v", header)
	}
}

func TestWebSocketTokens(t *testing.T) {
	known := &tokens{users: map[string]*request.User{"good": {Username: "jane"}}}
	encode := func(token string) string { return tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte(token)) }
	for name, test := range map[string]struct {
		protocols []string
		user, err string
		left      string
	}{
		"token and protocol": {[]string{"v5.channel.k8s.io, " + encode("good")}, "jane", "", "v5.channel.k8s.io"},
		"in two headers":     {[]string{encode("good"), "a,b"}, "jane", "", "a,b"},
		"no token":           {[]string{"v5.channel.k8s.io"}, "", "", "v5.channel.k8s.io"},
		"unknown token":      {[]string{"a", encode("bad")}, "", "invalid bearer token", "a"},
		"token alone":        {[]string{encode("good")}, "", "another subprotocol is required", ""},
		"two tokens":         {[]string{encode("good") + ",a," + encode("bad")}, "", "more than one", "a"},
		"not base64":         {[]string{"a," + tokenProtocol + "!"}, "", "not a base64url token", "a"},
		"empty token":        {[]string{"a," + tokenProtocol}, "", "not a base64url token", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := get("")
			r.Header["Upgrade"], r.Header["Sec-Websocket-Protocol"] = []string{"websocket"}, test.protocols
			user, ok, err := WebSocket{known}.Authenticate(r)
			check(t, user, ok, err, test.user, test.err)
			RemoveTokens(r.Header)
			if _, has := r.Header["Sec-Websocket-Protocol"]; r.Header.Get("Sec-WebSocket-Protocol") != test.left || has != (test.left != "") {
				t.Errorf("left %q", r.Header.Values("Sec-WebSocket-Protocol"))
			}
		})
	}
	r := get("")
	r.Header.Set("Sec-WebSocket-Protocol", "a,"+encode("good"))
	if _, ok, err := (WebSocket{known}).Authenticate(r); ok || err != nil {
		t.Errorf("a request that is no upgrade: %v %v", ok, err)
	}
}

func TestUnreadableAuthorityStays(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, newCA(t).Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := pki.NewAuthorities("ca", file, clock)
	if err != nil {
		t.Fatal(err)
	}
	before := a.Pool()
	if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(start.Add(time.Minute))
	if a.Pool() != before {
		t.Error("an unreadable file took the authorities away")
	}
}
