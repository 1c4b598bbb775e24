package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Etcd is a real etcd in a process of its own.
type Etcd struct {
	URL string

	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// StartEtcd starts Debian's etcd, and ends it when the test ends.
func StartEtcd(t testing.TB) *Etcd {
	t.Helper()
	return StartEtcds(t, 1)[0]
}

// StartEtcds starts the members of one etcd cluster.
func StartEtcds(t testing.TB, count int) []*Etcd {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Fatalf("the tests need Debian's etcd-server: %v", err)
	}
	var members []*Etcd
	var peers, initial []string
	for i := range count {
		members = append(members, &Etcd{t: t, URL: fmt.Sprintf("http://127.0.0.1:%d", FreePort(t))})
		peers = append(peers, fmt.Sprintf("http://127.0.0.1:%d", FreePort(t)))
		initial = append(initial, fmt.Sprintf("member%d=%s", i, peers[i]))
	}
	for i, e := range members {
		e.args = []string{
			"--name", fmt.Sprintf("member%d", i), "--initial-cluster", strings.Join(initial, ","),
			"--data-dir", t.TempDir(), "--listen-client-urls", e.URL, "--advertise-client-urls", e.URL,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
		}
		e.launch()
		t.Cleanup(e.Stop)
	}
	for _, e := range members {
		e.await()
	}
	return members
}

// PID is the process id.
func (e *Etcd) PID() int { return e.cmd.Process.Pid }

// Start starts the member with the data that it had, and waits until it
// answers, which takes a majority of its cluster.
func (e *Etcd) Start() {
	e.t.Helper()
	e.launch()
	e.await()
}

func (e *Etcd) launch() {
	e.t.Helper()
	e.cmd = exec.Command("etcd", e.args...)
	e.cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=")
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
}

func (e *Etcd) await() {
	e.t.Helper()
	Eventually(e.t, 60*time.Second, func() error {
		client, err := e.client()
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), time.Second)
		defer cancel()
		_, err = client.Get(ctx, "health")
		return err
	})
}

// Kill kills the member with SIGKILL.
func (e *Etcd) Kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
	e.cmd = nil
}

// Stop ends the member and waits for it. It does nothing if the member does not
// run.
func (e *Etcd) Stop() {
	if e.cmd == nil {
		return
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	_ = e.cmd.Wait()
	e.cmd = nil
}

func (e *Etcd) client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{e.URL}, DialTimeout: 5 * time.Second})
}

// Keys are the keys below prefix.
func (e *Etcd) Keys(t testing.TB, prefix string) []string {
	t.Helper()
	client, err := e.client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range answer.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// Compact makes etcd forget all revisions but the present one.
func (e *Etcd) Compact(t testing.TB) {
	t.Helper()
	client, err := e.client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := client.Get(t.Context(), "any", clientv3.WithCountOnly())
	if err == nil {
		_, err = client.Compact(t.Context(), answer.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatalf("compact etcd: %v", err)
	}
}
