package install_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kctl/test/harness"
)

// patience allows for a loaded machine.
const patience = 2 * time.Minute

// service is a program started as systemd starts it.
type service struct {
	t      *testing.T
	cmd    *exec.Cmd
	notify *net.UnixConn
	stderr lockedBuffer
	done   chan struct{}
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts a program with a notification socket, and kills it when the test
// ends.
func start(t *testing.T, program string, args []string, change ...func(*exec.Cmd)) *service {
	t.Helper()
	address := &net.UnixAddr{Name: filepath.Join(harness.Dir(t), "s"), Net: "unixgram"} // the paths of t.TempDir are too long
	s := &service{t: t, cmd: exec.Command(filepath.Join(harness.Bin(t), program), args...), done: make(chan struct{})}
	notify, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	s.notify = notify
	t.Cleanup(func() { s.notify.Close() })
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+address.Name)
	s.cmd.Stderr = &s.stderr
	for _, c := range change {
		c(s.cmd)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
	return s
}

// hears waits for a notification that contains want, and returns those before
// it.
func (s *service) hears(want string) (before []string) {
	s.t.Helper()
	_ = s.notify.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 4096)
	for {
		n, err := s.notify.Read(buf)
		if err != nil {
			s.t.Fatalf("it told %q, and never %q: %v\n%s", before, want, err, &s.stderr)
		}
		if strings.Contains(string(buf[:n]), want) {
			return before
		}
		before = append(before, string(buf[:n]))
	}
}

// ends waits until the program ends and returns its exit code and the last line
// that it wrote.
func (s *service) ends() (code int, last string) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatalf("it goes on:\n%s", &s.stderr)
	}
	lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n")
	return s.cmd.ProcessState.ExitCode(), lines[len(lines)-1]
}

// controlPlane has the files and addresses that the API server's unit uses.
type controlPlane struct {
	dir  string // in place of /etc/kctl
	port int
	etcd string
	data string
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	c := &controlPlane{dir: t.TempDir(), port: harness.FreePort(t), data: t.TempDir()}
	c.etcd = fmt.Sprintf("https://127.0.0.1:%d", harness.FreePort(t))
	run(t, filepath.Join(harness.Bin(t), "kctl"), "pki", "init", "--dir", c.dir, "--advertise-address=127.0.0.1",
		fmt.Sprintf("--server=https://127.0.0.1:%d", c.port))
	return c
}

func (c *controlPlane) pki(name string) string { return filepath.Join(c.dir, "pki", name) }

func (c *controlPlane) apiserver() []string {
	return []string{
		"--data-dir=" + c.data, fmt.Sprintf("--secure-port=%d", c.port),
		"--etcd-servers=" + c.etcd, "--etcd-cafile=" + c.pki("etcd/ca.crt"),
		"--etcd-certfile=" + c.pki("apiserver-etcd-client.crt"), "--etcd-keyfile=" + c.pki("apiserver-etcd-client.key"),
		"--tls-cert-file=" + c.pki("apiserver.crt"), "--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--service-account-key-file=" + c.pki("sa.pub"), "--service-account-signing-key-file=" + c.pki("sa.key"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"), "--cluster-signing-key-file=" + c.pki("ca.key"),
	}
}

// startEtcd starts etcd as its unit does, and ends it when the test ends.
func (c *controlPlane) startEtcd(t *testing.T) {
	t.Helper()
	peer := fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort(t))
	cmd := exec.Command("etcd", "--data-dir", filepath.Join(c.data, "etcd"), "--listen-client-urls", c.etcd, "--advertise-client-urls", c.etcd,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
		"--client-cert-auth", "--trusted-ca-file", c.pki("etcd/ca.crt"), "--cert-file", c.pki("etcd/server.crt"), "--key-file", c.pki("etcd/server.key"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// TestWrongOrder starts the scheduler before the API server, and the API server
// before etcd. Each waits, says what for, and is ready only when it can work.
func TestWrongOrder(t *testing.T) {
	c := newControlPlane(t)
	watched := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "WATCHDOG_USEC=1000000") }
	scheduler := start(t, "scheduler", []string{"--kubeconfig=" + filepath.Join(c.dir, "scheduler.kubeconfig"), "--secure-port=0"}, watched)
	scheduler.hears("STATUS=waiting for the API server")
	server := start(t, "apiserver", c.apiserver(), watched)
	server.hears("STATUS=waiting for etcd at " + c.etcd + ": dial tcp")
	harness.Eventually(t, patience, func() error { // it arrives through a pipe
		if log := server.stderr.String(); !strings.Contains(log, `"waiting for etcd"`) || !strings.Contains(log, "connection refused") {
			return fmt.Errorf("the log does not tell what is waited for:\n%s", log)
		}
		return nil
	})
	c.startEtcd(t)
	if told := server.hears("READY=1"); strings.Contains(fmt.Sprint(told), "READY") {
		t.Errorf("told before: %q", told)
	}
	scheduler.hears("READY=1")
	for _, s := range []*service{server, scheduler} {
		s.hears("WATCHDOG=1")
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		s.hears("STOPPING=1")
		if code, last := s.ends(); code != 0 {
			t.Errorf("exit code %d when asked to stop: %s", code, last)
		}
	}
}

// TestWrongFiles starts the API server with files that are missing, of
// something else, or unreadable, and on a port that is taken. It ends with one
// message that says what to do, and leaves the disk as it was.
func TestWrongFiles(t *testing.T) {
	c := newControlPlane(t)
	c.startEtcd(t)
	other := newControlPlane(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		name  string
		flags []string
		says  []string
	}{
		{"no certificate", []string{"--tls-cert-file=" + c.pki("nothing.crt")}, []string{"nothing.crt: no such file", "kctl pki init"}},
		{"no authority", []string{"--client-ca-file=" + c.pki("nothing.crt")}, []string{"nothing.crt: no such file", "kctl pki init"}},
		{"another's key", []string{"--tls-private-key-file=" + c.pki("sa.key")}, []string{"apiserver.crt", "sa.key", "does not match", "kctl pki check"}},
		{"certificate and key swapped", []string{"--tls-cert-file=" + c.pki("apiserver.key"), "--tls-private-key-file=" + c.pki("apiserver.crt")},
			[]string{"apiserver.key with key", "apiserver.crt"}},
		{"an empty certificate", []string{"--tls-cert-file=/dev/null"}, []string{"/dev/null", "kctl pki check", "kctl pki init"}},
		{"no certificate in the file", []string{"--client-ca-file=" + c.pki("sa.pub")}, []string{"sa.pub"}},
		{"another etcd's authority", []string{"--etcd-cafile=" + other.pki("etcd/ca.crt")},
			[]string{"etcd at " + c.etcd, "unknown authority", "--etcd-cafile", "kctl pki check"}},
		{"not a client of etcd", []string{"--etcd-certfile=" + other.pki("apiserver-etcd-client.crt"), "--etcd-keyfile=" + other.pki("apiserver-etcd-client.key")},
			[]string{"etcd at " + c.etcd, "tls: ", "--etcd-certfile"}},
		{"port taken", []string{fmt.Sprintf("--secure-port=%d", taken.Addr().(*net.TCPAddr).Port)}, []string{"address already in use", "ss -ltnp"}},
		{"address of another machine", []string{"--bind-address=192.0.2.1"}, []string{"listen on 192.0.2.1", "ip address"}},
		{"data directory is a file", []string{"--data-dir=" + c.pki("ca.crt")}, []string{"ca.crt", "not a directory"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, "apiserver", append(c.apiserver(), tc.flags...))
			code, last := s.ends()
			if code == 0 {
				t.Error("exit code 0")
			}
			for _, want := range tc.says {
				if !strings.Contains(last, want) {
					t.Errorf("it does not say %q:\n%s", want, last)
				}
			}
			if !strings.HasPrefix(last, "apiserver: ") || len(last) > 1000 {
				t.Errorf("the last line is no message:\n%s", last)
			}
		})
	}
	run(t, filepath.Join(harness.Bin(t), "kctl"), "pki", "check", "--dir", c.dir)
}

// TestWrongPermissions starts the programs as a user who may not read their
// files.
func TestWrongPermissions(t *testing.T) {
	harness.NeedRoot(t)
	c := newControlPlane(t)
	for _, dir := range []string{c.dir, filepath.Dir(c.dir), c.data, filepath.Dir(c.data)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(c.data, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	programs := reachable(t, "apiserver", "scheduler")
	unprivileged := func(cmd *exec.Cmd) {
		cmd.Path = programs + "/" + filepath.Base(cmd.Path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	for program, args := range map[string][]string{
		"apiserver": c.apiserver(),
		"scheduler": {"--kubeconfig=" + filepath.Join(c.dir, "scheduler.kubeconfig")},
	} {
		code, last := start(t, program, args, unprivileged).ends()
		if code == 0 || !strings.Contains(last, "permission denied") || !strings.Contains(last, "uid 65534") || !strings.Contains(last, "namei -l "+c.dir) {
			t.Errorf("%s: exit code %d: %s", program, code, last)
		}
	}
}

const nobody = 65534

// reachable copies programs to a directory that every user may enter.
func reachable(t *testing.T, programs ...string) string {
	t.Helper()
	dir := harness.Dir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		from, to := filepath.Join(harness.Bin(t), p), filepath.Join(dir, p)
		if err := os.Link(from, to); err != nil {
			run(t, "cp", from, to) // it is on another file system
		}
	}
	return dir
}

// TestWrongNode starts kubelets that can't work.
func TestWrongNode(t *testing.T) {
	harness.NeedRoot(t)
	c := newControlPlane(t)
	missing := filepath.Join(t.TempDir(), "containerd.sock")
	args := func(more ...string) []string {
		return append([]string{
			"--root-dir=" + t.TempDir(), "--cert-dir=" + t.TempDir(), "--pod-logs-dir=" + t.TempDir(), "--node-ip=127.0.0.1", "--address=127.0.0.1",
			"--container-runtime-endpoint=unix://" + missing, "--pod-manifest-path=" + t.TempDir(), "--make-iptables-util-chains=false",
		}, more...)
	}
	t.Run("no runtime", func(t *testing.T) {
		s := start(t, "kubelet", args())
		s.hears("STATUS=waiting for the container runtime")
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code, last := s.ends(); code != 0 {
			t.Errorf("exit code %d when asked to stop while it waits: %s", code, last)
		}
	})
	for _, tc := range []struct {
		name  string
		flags []string
		says  []string
	}{
		{"not joined", []string{"--kubeconfig=" + c.dir + "/kubelet.kubeconfig"}, []string{"kubelet.kubeconfig: no such file", "kctl join"}},
		{"not joined, bootstrapping", []string{"--kubeconfig=" + c.dir + "/kubelet.kubeconfig", "--bootstrap-kubeconfig=" + c.dir + "/bootstrap-kubelet.kubeconfig"},
			[]string{"bootstrap-kubelet.kubeconfig: no such file", "kctl join"}},
		{"no configuration", []string{"--config=" + c.dir + "/kubelet.yaml"}, []string{"kubelet.yaml: no such file", "kctl join"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, last := start(t, "kubelet", args(tc.flags...)).ends()
			if code == 0 {
				t.Error("exit code 0")
			}
			for _, want := range tc.says {
				if !strings.Contains(last, want) {
					t.Errorf("it does not say %q:\n%s", want, last)
				}
			}
		})
	}
}
