package operations_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kctl/test/harness"
)

// member is a member of an etcd cluster, in a process of its own.
type member struct {
	name, data, client, peer string
	cmd                      *exec.Cmd
}

// members are the members of an etcd cluster, of the version that the API
// server embeds.
type members struct {
	t     *testing.T
	all   []*member
	flags []string // of all
}

func newMembers(t *testing.T, count int) *members {
	t.Helper()
	if _, err := os.Stat(filepath.Join(harness.Bin(t), "etcdutl")); err != nil {
		t.Fatalf("make etcd has not been run: %v", err)
	}
	m := &members{t: t}
	for i := range count {
		m.all = append(m.all, &member{
			name: fmt.Sprintf("etcd-%d", i+1), data: filepath.Join(t.TempDir(), "etcd"),
			client: fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort(t)), peer: fmt.Sprintf("http://127.0.0.1:%d", harness.FreePort(t)),
		})
	}
	t.Cleanup(m.stop)
	return m
}

// endpoints are the members' client URLs.
func (m *members) endpoints() string {
	var all []string
	for _, one := range m.all {
		all = append(all, one.client)
	}
	return strings.Join(all, ",")
}

func (m *members) cluster() string {
	var all []string
	for _, one := range m.all {
		all = append(all, one.name+"="+one.peer)
	}
	return "--initial-cluster=" + strings.Join(all, ",")
}

// start starts all members, with the data that they have. It does not wait
// until they are ready.
func (m *members) start() {
	for _, one := range m.all {
		m.startOne(one)
	}
}

func (m *members) startOne(one *member) {
	one.cmd = exec.Command(filepath.Join(harness.Bin(m.t), "etcd"), append([]string{"--name=" + one.name, "--data-dir=" + one.data,
		"--listen-client-urls=" + one.client, "--advertise-client-urls=" + one.client,
		"--listen-peer-urls=" + one.peer, "--initial-advertise-peer-urls=" + one.peer, m.cluster(), "--log-level=error"}, m.flags...)...)
	if err := one.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// stop kills all members.
func (m *members) stop() {
	for _, one := range m.all {
		m.stopOne(one)
	}
}

func (m *members) stopOne(one *member) {
	if one.cmd != nil {
		_ = one.cmd.Process.Signal(syscall.SIGKILL) // as if the power failed
		_ = one.cmd.Wait()
		one.cmd = nil
	}
}
