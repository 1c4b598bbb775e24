package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const serverToken = "root-token"

// Server is an API server in a process of its own, without the rest of a
// cluster. It keeps its port when it is started again.
type Server struct {
	Dir  string // its log, and the data of its embedded etcd if it has one
	Port int

	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// StartServer starts an API server with flags, and ends it when the test ends.
func StartServer(t testing.TB, flags ...string) *Server {
	t.Helper()
	dir, release := holdDir(t, Bin(t))
	t.Cleanup(func() {
		_ = os.RemoveAll(dir)
		release()
	})
	s := &Server{t: t, Dir: dir, Port: FreePort(t)}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(serverToken+",root,1,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{
		"--data-dir=" + dir, fmt.Sprintf("--secure-port=%d", s.Port), "--token-auth-file=" + tokens, "--authorization-mode=Node,RBAC",
	}, flags...)
	t.Cleanup(func() {
		s.Stop()
		if log, err := os.ReadFile(filepath.Join(dir, "log")); err == nil && t.Failed() {
			t.Logf("--- the end of the API server's log\n%s", log[max(0, len(log)-4000):])
		}
	})
	s.Start()
	return s
}

// Start starts the server with the data that it had, and waits until it is
// ready.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = exec.Command(filepath.Join(Bin(s.t), "apiserver"), s.args...)
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	client := s.Client()
	Eventually(s.t, 2*time.Minute, func() error {
		return client.RESTClient().Get().AbsPath("/readyz").Do(s.t.Context()).Error()
	})
}

// Stop ends the server and waits for it. It does nothing if the server does not
// run.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Client is a client-go client of a user who may do everything.
func (s *Server) Client() *kubernetes.Clientset {
	s.t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: s.url(), BearerToken: serverToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

func (s *Server) url() string { return fmt.Sprintf("https://127.0.0.1:%d", s.Port) }

// Shell runs a line of sh as an operator would, with the programs on the PATH
// and kctl pointed at the server, and returns its output.
func (s *Server) Shell(line string, env ...string) (string, error) {
	s.t.Helper()
	kubeconfig := filepath.Join(s.Dir, "admin.kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a",`+
		`"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],`+
		`"clusters":[{"name":"a","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"a","user":{"token":%q}}]}`,
		s.url(), serverToken)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command("sh", "-euc", line)
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), append([]string{"KUBECONFIG=" + kubeconfig, "PATH=" + Bin(s.t) + ":" + os.Getenv("PATH")}, env...)...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// MustShell is Shell for a line that must succeed.
func (s *Server) MustShell(line string, env ...string) string {
	s.t.Helper()
	out, err := s.Shell(line, env...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}
