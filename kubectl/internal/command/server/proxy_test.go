package server

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"kctl/kubectl/internal/command/frame"
)

// TestFilter: by default a proxy answers only to its own name, and refuses
// WebSockets and writes to pages of other sites; other answers their browser
// keeps from them.
func TestFilter(t *testing.T) {
	flags := newProxy(&frame.CLI{}).Flags()
	p := &proxyOptions{}
	for name, into := range map[string]*string{"accept-hosts": &p.acceptHosts, "accept-paths": &p.acceptPaths, "reject-paths": &p.rejectPaths, "reject-methods": &p.rejectMethods} {
		*into = flags.Lookup(name).DefValue
	}
	f, err := p.filter()
	if err != nil {
		t.Fatal(err)
	}
	const evil = "https://evil.example"
	for _, test := range []struct {
		method, host, path string
		origin, upgrade    string
		want               bool
	}{
		{"GET", "localhost:8001", "/api", "", "", true},
		{"POST", "[::1]:8001", "/api/v1/namespaces/a/configmaps", "", "", true},
		{"GET", "evil.example", "/api", "", "", false}, // a name that was made to mean loopback
		{"GET", "localhost.evil.example:8001", "/api", "", "", false},
		{"GET", "127.0.0.1:8001", "/api/v1/namespaces/a/pods/p/exec", "", "", false},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", evil, "", true}, // which its browser keeps from it
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", evil, "websocket", false},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", "null", "websocket", false},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", "http://127.0.0.1:8001", "websocket", true},
		{"GET", "127.0.0.1:8001", "/api/v1/secrets", "http://localhost:3000", "websocket", true},
		{"POST", "127.0.0.1:8001", "/api/v1/namespaces/a/pods", evil, "", false},
		{"DELETE", "127.0.0.1:8001", "/api/v1/namespaces/a", "http://127.0.0.1.evil.example", "", false},
		{"POST", "127.0.0.1:8001", "/api/v1/namespaces/a/pods", "://", "", false},
	} {
		r := httptest.NewRequest(test.method, test.path, nil)
		r.Host = test.host
		for name, value := range map[string]string{"Origin": test.origin, "Upgrade": test.upgrade} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if got := f.accepts(r); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestUnixSocket: a proxy replaces an earlier one's socket and no other file, and others
// can't connect, whatever files the user makes are readable by.
func TestUnixSocket(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	p := &proxyOptions{unixSocket: filepath.Join(dir, "file")}
	if err := os.WriteFile(p.unixSocket, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.listen(t.Context()); err == nil {
		t.Error("a file gave way to a socket")
	}
	if text, err := os.ReadFile(p.unixSocket); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
	p.unixSocket = filepath.Join(dir, "socket")
	for range 2 { // the second finds the first one's
		listener, err := p.listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if info, err := os.Stat(p.unixSocket); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%v, %v", info, err)
		}
	}
}
