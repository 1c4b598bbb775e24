package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHealth(t *testing.T) {
	h := NewHealth()
	var broken error
	h.Add("store", func(context.Context) error { return broken })
	get := func(target string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		return w.Code, w.Body.String()
	}
	for _, tc := range []struct {
		target string
		broken error
		code   int
		body   string
	}{
		{"/readyz", nil, 200, "ok"},
		{"/readyz?verbose", nil, 200, "[+]ping ok\n[+]store ok\nreadyz check passed\n"},
		{"/readyz?verbose", Remark("one is lost"), 200, "[+]ping ok\n[+]store ok, but one is lost\nreadyz check passed\n"},
		{"/readyz", Remark("one is lost"), 200, "ok"},
		{"/readyz", errors.New("no connection"), 500, "[+]ping ok\n[-]store failed: no connection\nreadyz check failed\n"},
		{"/livez", errors.New("no connection"), 200, "ok"},
		{"/readyz?exclude=store", errors.New("no connection"), 200, "ok"},
		{"/readyz?exclude=store&exclude=b&exclude=a&exclude=b", nil, 200, "ok"},
		{"/readyz?verbose&exclude=store&exclude=b&exclude=a&exclude=b", nil, 200, "[+]ping ok\n[+]store excluded: ok\n" +
			"warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nreadyz check passed\n"},
		{"/healthz/store", errors.New("no connection"), 500, "[-]store failed: no connection\nhealthz check failed\n"},
		{"/healthz/ping", errors.New("no connection"), 200, "ok"},
		{"/healthz/nonsense", nil, 404, "404 page not found\n"},
	} {
		broken = tc.broken
		if code, body := get(tc.target); code != tc.code || body != tc.body {
			t.Errorf("%s with %v: %d %q, want %d %q", tc.target, tc.broken, code, body, tc.code, tc.body)
		}
	}
}

// Checks that wait for the same thing wait at the same time. Here each waits for the other;
// one after the other, they would wait for ever.
func TestChecksWaitSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth()
		here, there := make(chan struct{}), make(chan struct{})
		h.Add("here", func(context.Context) error { close(here); <-there; return nil })
		h.Add("there", func(context.Context) error { close(there); <-here; return nil })
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
		if want := "[+]ping ok\n[+]here ok\n[+]there ok\nreadyz check passed\n"; w.Body.String() != want {
			t.Errorf("%q, want %q", w.Body.String(), want)
		}
		here, there = make(chan struct{}), make(chan struct{})
		if err := h.Check(t.Context(), Healthz); err != nil {
			t.Error(err)
		}
	})
}

func TestAPanicIsOfItsCheckAlone(t *testing.T) {
	h := NewHealth()
	h.Add("store", func(context.Context) error { panic("no store") })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if want := "[+]ping ok\n[-]store failed: panic: no store\nreadyz check failed\n"; w.Code != 500 || w.Body.String() != want {
		t.Errorf("%d %q, want %q", w.Code, w.Body.String(), want)
	}
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := make(chan net.Addr, 1)
	done := make(chan error, 1)
	go func() {
		done <- (&Listener{
			Address: "127.0.0.1:0", Handler: Endpoints(NewHealth(), NewRegistry()), Logger: zaptest.NewLogger(t),
			OnListen: func(a net.Addr) { address <- a },
		}).Serve(ctx)
	}()
	base := "http://" + (<-address).String()
	for path, want := range map[string]string{"/healthz": "ok", "/metrics": `kubernetes_build_info{build_date="`, "/version": `"minor":"37"`} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %q does not contain %q", path, body, want)
		}
	}
	var conns []net.Conn
	for range NewConnections(zap.NewNop()).Strangers + 1 {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	if !answers(conns[len(conns)-1], "") || answers(conns[0], "") {
		t.Error("connections have no bounds")
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after its context ended: %v", err)
	}
	if err := (&Listener{Address: "127.0.0.1:99999"}).Serve(t.Context()); err == nil {
		t.Error("a port that can't be was listened on")
	}
}

func TestExitCode(t *testing.T) {
	for _, tc := range []struct {
		err   error
		asked bool
		want  int
	}{
		{nil, false, exitOK}, {context.Canceled, true, exitOK}, {context.Canceled, false, exitError},
		{errors.New("x"), true, exitError}, {&UsageError{errors.New("x")}, false, exitUsage},
	} {
		if got := exitCode("test", tc.err, tc.asked); got != tc.want {
			t.Errorf("%v: exit code %d, want %d", tc.err, got, tc.want)
		}
	}
}

// What libraries write to Go's standard log is a line of the program's log.
func TestLinesOfLibraries(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	flags, stderr := log.Flags(), os.Stderr
	defer func() { os.Stderr = stderr; log.SetOutput(stderr); log.SetFlags(flags) }()
	os.Stderr = file
	if _, err := (&LogOptions{Format: "json"}).Logger(); err != nil {
		t.Fatal(err)
	}
	log.Print("read error\nsecond line")
	written, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	var line struct{ Level, Logger, Msg string }
	if err := json.Unmarshal(written, &line); err != nil || line.Level != "warn" || line.Logger != "library" || line.Msg != "read error\nsecond line" {
		t.Errorf("%s: %v", written, err)
	}
}

func TestLoggerRefusesUnknownFormat(t *testing.T) {
	o := LogOptions{Format: "xml"}
	if _, err := o.Logger(); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("got %v", err)
	}
	cmd := &cobra.Command{}
	o.AddFlags(cmd.Flags())
	if err := cmd.ParseFlags([]string{"-v", "4", "--logging-format", "json"}); err != nil || o.Verbosity != 4 {
		t.Errorf("flags: %v, %+v", err, o)
	}
}

func TestAdvice(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "/etc/kctl/pki/ca.key", Err: syscall.EACCES}
	for _, tc := range []struct {
		err  error
		says string
	}{
		{fmt.Errorf("listen on x: %w", syscall.EADDRINUSE), "ss -ltnp"},
		{fmt.Errorf("listen on x: %w", syscall.EADDRNOTAVAIL), "ip address"},
		{fmt.Errorf("write x: %w", syscall.ENOSPC), "df -h"},
		{fmt.Errorf("read key: %w", denied), "namei -l /etc/kctl/pki/ca.key"},
		{&fs.PathError{Op: "open", Path: "/x/ca.crt", Err: syscall.ENOENT}, "kctl pki init"},
		{&fs.PathError{Op: "open", Path: "/etc/kctl/bootstrap-kubelet.kubeconfig", Err: syscall.ENOENT}, "kctl join"},
		{errors.New("certificate x with key y: tls: failed to find any PEM data in certificate input"), "kctl pki init"},
		{errors.New("kubeconfig x: no current-context"), "kctl pki check"},
		{&fs.PathError{Op: "open", Path: "/x/policy.yaml", Err: syscall.ENOENT}, ""},
		{errors.New("tls: private key does not match public key"), "kctl pki check"},
		{errors.New("anything else"), ""},
	} {
		got := adviceFor(&UsageError{tc.err})
		if !strings.Contains(got, tc.says) || tc.says == "" && got != "" {
			t.Errorf("%v: %q, want something with %q", tc.err, got, tc.says)
		}
	}
}

func TestPodFields(t *testing.T) {
	line := zapcore.NewMapObjectEncoder()
	PodFields(&metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}).AddTo(line)
	if want := map[string]any{"pod": "shop/web", "uid": "u1"}; !maps.Equal(line.Fields, want) {
		t.Errorf("got %v, want %v", line.Fields, want)
	}
}
