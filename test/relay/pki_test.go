package relay_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kctl/test/harness"
)

// byHand is a cluster that the test brings up itself: each program is started
// with its flags, and with the files that `kctl pki init` and `kctl join` make.
// Only its containerd is the harness's.
type byHand struct {
	t    *testing.T
	c    *harness.Cluster
	dir  string // in place of /etc/kctl
	port int    // of the API server
}

// A cluster is set up by the documented steps, a node joins, a pod runs, and
// the certificates are renewed while all of it runs.
func TestAClusterFromPKIAndJoin(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{Without: []string{"apiserver", "scheduler", "kubelet"}})
	b := &byHand{t: t, c: c, dir: filepath.Join(c.Dir, "log", "etc"), port: harness.FreePort(t)}
	server := "https://127.0.0.1:" + strconv.Itoa(b.port)
	c.Kctl("pki", "init", "--dir", b.dir, "--advertise-address", "127.0.0.1", "--server", server)
	etcd := b.etcd()
	b.apiserver(etcd)
	b.start("scheduler", "--kubeconfig="+b.file("scheduler.kubeconfig"), "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(harness.FreePort(t)))

	b.join()
	b.kctl("run", "joined", "--image="+harness.Demo)
	if phase := b.kctl("get", "pod", "joined", "-o", "jsonpath={.status.phase}"); phase != "Running" {
		t.Errorf("the pod on the joined node is %s", phase)
	}
	b.renew(etcd)
	if told := b.eventually("doctor", "--dir", b.dir); !strings.Contains(told, "including etcd") || !strings.Contains(told, "all of them ready") {
		t.Errorf("the doctor says:\n%s", told)
	}
}

func (b *byHand) file(name string) string { return filepath.Join(b.dir, name) }

// kctl runs kctl as this cluster's admin.
func (b *byHand) kctl(args ...string) string {
	b.t.Helper()
	return b.c.Kctl(append([]string{"--kubeconfig", b.file("admin.kubeconfig")}, args...)...)
}

// start starts a program, and ends it when the test ends.
func (b *byHand) start(name string, args ...string) {
	b.t.Helper()
	path := b.c.Bin(name)
	if name == "etcd" {
		path = name
	}
	log, err := os.Create(filepath.Join(b.c.Dir, "log", "by-hand-"+name+".log")) // shown if the test fails
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		killed := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer killed.Stop()
		_ = cmd.Wait()
	})
}

// etcd starts an etcd and returns its address.
func (b *byHand) etcd() string {
	address := "127.0.0.1:" + strconv.Itoa(harness.FreePort(b.t))
	url, peer := "https://"+address, "https://127.0.0.1:"+strconv.Itoa(harness.FreePort(b.t))
	b.start("etcd", "--data-dir="+b.t.TempDir(),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--client-cert-auth", "--trusted-ca-file="+b.file("pki/etcd/ca.crt"), "--cert-file="+b.file("pki/etcd/server.crt"),
		"--key-file="+b.file("pki/etcd/server.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+b.file("pki/etcd/ca.crt"), "--peer-cert-file="+b.file("pki/etcd/peer.crt"),
		"--peer-key-file="+b.file("pki/etcd/peer.key"))
	return address
}

func (b *byHand) apiserver(etcd string) {
	b.start("apiserver", "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(b.port), "--data-dir="+b.t.TempDir(),
		"--etcd-servers=https://"+etcd, "--etcd-cafile="+b.file("pki/etcd/ca.crt"),
		"--etcd-certfile="+b.file("pki/apiserver-etcd-client.crt"), "--etcd-keyfile="+b.file("pki/apiserver-etcd-client.key"),
		"--tls-cert-file="+b.file("pki/apiserver.crt"), "--tls-private-key-file="+b.file("pki/apiserver.key"),
		"--client-ca-file="+b.file("pki/ca.crt"), "--root-ca-file="+b.file("pki/ca.crt"),
		"--cluster-signing-cert-file="+b.file("pki/ca.crt"), "--cluster-signing-key-file="+b.file("pki/ca.key"),
		"--service-account-key-file="+b.file("pki/sa.pub"), "--service-account-signing-key-file="+b.file("pki/sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--kubelet-client-certificate="+b.file("pki/apiserver-kubelet-client.crt"), "--kubelet-client-key="+b.file("pki/apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority="+b.file("pki/ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file="+b.file("pki/front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+b.file("pki/front-proxy-client.crt"), "--proxy-client-key-file="+b.file("pki/front-proxy-client.key"),
		"--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth")
	b.eventually("get", "--raw=/readyz")
}

// eventually runs kctl until it succeeds.
func (b *byHand) eventually(args ...string) (out string) {
	b.t.Helper()
	harness.Eventually(b.t, 2*time.Minute, func() error {
		r := b.c.Run("", b.c.Bin("kctl"), append([]string{"--kubeconfig", b.file("admin.kubeconfig")}, args...)...)
		if r.Code != 0 {
			return errors.New(r.Stdout + r.Stderr)
		}
		out = r.Stdout
		return nil
	})
	return out
}

// join runs the printed join command, in a directory of the node's own, and
// starts the kubelet with the command that it prints.
func (b *byHand) join() {
	b.t.Helper()
	line := strings.Fields(b.kctl("token", "create", "--print-join-command"))
	node, port := filepath.Join(b.c.Dir, "log", "node"), strconv.Itoa(harness.FreePort(b.t))
	args := append(line[1:], "--dir", node, "--start=none", "--node-name", b.c.Node, "--node-ip=127.0.0.1",
		"--root-dir", filepath.Join(b.c.Dir, "kubelet"), "--cri-socket", "unix://"+filepath.Join(b.c.Dir, "run", "containerd.sock"),
		"--kubelet-port", port,
		// This machine's kernel settings and disk are not under test.
		"--ignore-preflight-errors=ip-forward,disk")
	wrong := strings.Join(args, " ")
	hash := line[len(line)-1]
	wrong = strings.Replace(wrong, hash, "sha256:"+strings.Repeat("0", 64), 1)
	if told := b.c.KctlFails(strings.Fields(wrong)...); !strings.Contains(told, "The token was not sent") {
		b.t.Errorf("a server of another authority: %s", told)
	}
	unknown := strings.Replace(strings.Join(args, " "), line[4], "abcdef.0123456789abcdef", 1)
	if told := b.c.KctlFails(strings.Fields(unknown)...); !strings.Contains(told, "does not know the token abcdef") || strings.Contains(told, "0123456789abcdef") {
		b.t.Errorf("an unknown token: %s", told)
	}
	if _, err := os.Stat(node); !errors.Is(err, os.ErrNotExist) {
		b.t.Errorf("refusals left files: %v", err)
	}
	out := b.c.Kctl(args...)
	_, command, _ := strings.Cut(out, "Start it by\n\n")
	words := strings.Fields(command)
	if len(words) == 0 || words[0] != b.c.Bin("kubelet") {
		b.t.Fatalf("join printed %s", out)
	}
	b.start("kubelet", append(words[1:], "--cgroup-root="+harness.CgroupRoot(b.c.Dir), "--pod-logs-dir="+filepath.Join(b.c.Dir, "log", "pods"),
		"--healthz-port=0", "--make-iptables-util-chains=false", "--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100")...)
	b.eventually("wait", "--for=condition=Ready", "node/"+b.c.Node, "--timeout=60s")
	if again := b.c.Kctl(args...); !strings.Contains(again, "has joined") {
		b.t.Errorf("joining again: %s", again)
	}
	b.portIsTaken(port)
}

// portIsTaken starts a second kubelet on the port of the running one.
func (b *byHand) portIsTaken(port string) {
	b.t.Helper()
	second := b.c.Run("", b.c.Bin("kubelet"), "--port="+port, "--address=127.0.0.1", "--healthz-port=0", "--make-iptables-util-chains=false",
		"--pod-manifest-path="+b.t.TempDir(),
		"--root-dir="+b.t.TempDir(), "--cert-dir="+b.t.TempDir(), "--pod-logs-dir="+b.t.TempDir(), "--node-ip=127.0.0.1",
		"--container-runtime-endpoint=unix://"+filepath.Join(b.c.Dir, "run", "containerd.sock"), "--cgroup-root="+harness.CgroupRoot(b.c.Dir))
	last := second.Stderr[strings.LastIndex(strings.TrimSpace(second.Stderr), "\n")+1:]
	for _, want := range []string{"kubelet: ", ":" + port + ": ", "address already in use", "ss -ltnp"} {
		if second.Code == 0 || !strings.Contains(last, want) {
			b.t.Errorf("exit code %d, and it does not say %q: %s", second.Code, want, last)
		}
	}
}

// renew renews every certificate; the running servers use the new ones, and the
// pod runs on.
func (b *byHand) renew(etcd string) {
	b.t.Helper()
	apiserver := "127.0.0.1:" + strconv.Itoa(b.port)
	before := map[string]string{apiserver: b.serial(apiserver), etcd: b.serial(etcd)}
	b.c.Kctl("pki", "renew", "all", "--dir", b.dir)
	for address, old := range before {
		harness.Eventually(b.t, 2*time.Minute, func() error {
			if b.serial(address) == old {
				return fmt.Errorf("%s shows the old certificate", address)
			}
			return nil
		})
	}
	b.kctl("run", "renewed", "--image="+harness.Demo)
	b.c.Kctl("pki", "check", "--dir", b.dir)
}

// serial is the serial number of a server's certificate.
func (b *byHand) serial(address string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	serial := ""
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		serial = state.PeerCertificates[0].SerialNumber.String()
		return nil
	}}}).DialContext(ctx, "tcp", address)
	var remote *net.OpError
	if err != nil && !errors.As(err, &remote) {
		b.t.Fatal(err)
	}
	if conn != nil {
		conn.Close()
	}
	return serial
}
