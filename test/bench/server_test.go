package bench_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kctl/test/harness"
)

const masterToken = "bench-token"

// server is an API server in a process of its own, without the rest of a
// cluster.
type server struct {
	b       testing.TB
	dir     string
	args    []string
	cmd     *exec.Cmd
	address string
	// started is the time from exec to the first successful readyz.
	started time.Duration
}

// startServer starts the API server with flags, and ends it when the benchmark
// ends.
func startServer(b testing.TB, flags ...string) *server {
	b.Helper()
	dir, err := os.MkdirTemp("", "kctl-bench-") // short enough for the path of etcd's socket
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(masterToken+",root,1,system:masters\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	s := &server{b: b, dir: dir, args: append([]string{
		"--data-dir=" + dir, "--secure-port=0", "--token-auth-file=" + tokens,
		"--authorization-mode=Node,RBAC",
	}, flags...)}
	s.start()
	b.Cleanup(s.stop)
	return s
}

func (s *server) start() {
	s.b.Helper()
	port := filepath.Join(s.dir, "apiserver.port")
	_ = os.Remove(port)
	s.cmd = exec.Command(filepath.Join(harness.Bin(s.b), "apiserver"), s.args...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.b.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	_ = log.Close()
	client := httpClient()
	for deadline := begin.Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.b.Fatalf("the API server is not ready:\n%s", text)
		}
		text, err := os.ReadFile(port)
		if err != nil || len(text) == 0 {
			continue
		}
		s.address = "127.0.0.1:" + strings.TrimSpace(string(text))
		if s.get(client, "/readyz") == http.StatusOK {
			break
		}
	}
	s.started = time.Since(begin)
}

func (s *server) stop() {
	end(s.b, "API server", s.cmd)
	s.cmd = nil
}

// end asks a program to stop, and waits until it has. A nil cmd is ignored.
func end(b testing.TB, name string, cmd *exec.Cmd) {
	b.Helper()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		b.Errorf("the %s ended with %v", name, err)
	}
}

// serverTLS trusts any server: it is the process that was started above.
func serverTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // loopback
}

// httpClient is net/http's client, with a connection of its own.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:    serverTLS(),
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
		HTTP2:              &http.HTTP2Config{MaxReceiveBufferPerStream: 4 << 20, MaxReceiveBufferPerConnection: 16 << 20},
	}}
}

// request sends a request with the master's token.
func (s *server) request(ctx context.Context, client *http.Client, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "https://"+s.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+masterToken)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return client.Do(r)
}

// get reads the whole answer and returns its status, 0 if there was none.
func (s *server) get(client *http.Client, path string) int {
	answer, err := s.request(s.b.Context(), client, http.MethodGet, path, "")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// cpu is the CPU time of a process.
func cpu(b testing.TB, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil && len(strings.Fields(string(data))) == 3 {
		return taskTime(b, pid)
	}
	b.Fatal("no schedstat: ", err)
	return 0
}

// taskTime sums up the threads, whose schedstat counts nanoseconds.
func taskTime(b testing.TB, pid int) time.Duration {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var sum time.Duration
	for _, task := range tasks {
		var spent int64
		data, err := os.ReadFile(task)
		if err != nil {
			continue // has ended meanwhile
		}
		if _, err := fmt.Sscan(string(data), &spent); err == nil {
			sum += time.Duration(spent)
		}
	}
	return sum
}

// pod is a pod's manifest of 1 KB.
func pod(name string) string {
	const form = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default",` +
		`"labels":{"app":"bench","tier":"web","release":"stable"},"annotations":{"example.org/owner":"team-a","example.org/note":%q}},` +
		`"spec":{"containers":[{"name":"web","image":"registry.example.org/team-a/web:1.2.3","command":["/bin/web","--listen=:8080"],` +
		`"env":[{"name":"MODE","value":"production"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],` +
		`"ports":[{"name":"http","containerPort":8080}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},` +
		`"readinessProbe":{"httpGet":{"path":"/ready","port":"http"},"periodSeconds":5},` +
		`"volumeMounts":[{"name":"cache","mountPath":"/var/cache/web"}]}],` +
		`"volumes":[{"name":"cache","emptyDir":{}}],"terminationGracePeriodSeconds":10}}`
	empty := len(fmt.Sprintf(form, name, ""))
	return fmt.Sprintf(form, name, strings.Repeat("x", max(0, 1024-empty)))
}
