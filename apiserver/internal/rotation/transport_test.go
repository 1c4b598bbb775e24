package rotation

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/pki"
)

// world is a server that says what it is shown, and the files of its client.
type world struct {
	*httptest.Server
	t         *testing.T
	cert, key string
	transport *Transport
}

func newWorld(t *testing.T, http2 bool) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key")}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.TLS.PeerCertificates[0].Subject.CommonName+"\n")
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	w.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	w.EnableHTTP2 = http2
	w.StartTLS()
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	w.show("one")
	reloader, err := pki.NewReloader(w.cert, w.key, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	w.transport = New(&http.Transport{
		ForceAttemptHTTP2: http2,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, GetClientCertificate: reloader.GetClientCertificate},
	}, nil)
	t.Cleanup(w.transport.CloseIdleConnections)
	return w
}

// show replaces the client's certificate by one of that name.
func (w *world) show(name string) {
	w.t.Helper()
	pair, err := pki.SelfSigned(pki.Subject{CommonName: name, Client: true}, time.Now(), time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pair.Save(w.cert, w.key); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(path string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), "GET", w.URL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := w.transport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// TestACertificateIsReplacedWhileConnectionsAreInUse: a request shows the new one, although a watch
// keeps a connection with the old one open, and the watch goes on.
func TestACertificateIsReplacedWhileConnectionsAreInUse(t *testing.T) {
	for proto, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		w := newWorld(t, http2)
		watch := bufio.NewReader(w.get("/watch").Body)
		for _, name := range []string{"one", "two", "two", "three"} {
			w.show(name)
			body, err := io.ReadAll(w.get("/").Body)
			if want := proto + " " + name + "\n"; err != nil || string(body) != want {
				t.Errorf("the server was shown %q, %v, want %q", body, err, want)
			}
		}
		if line, err := watch.ReadString('\n'); err != nil || line != proto+" one\n" {
			t.Errorf("the watch: %q, %v", line, err)
		}
	}
}
