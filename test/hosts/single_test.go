package hosts_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kctl/test/harness"
)

// single is a machine for a cluster in kctl's default directory: its
// /var/lib/kctl is the machine's own.
type single struct {
	*machine
	groups []int    // of processes that scripts left running
	told   []string // files with their output
}

func newSingle(t *testing.T) *single {
	t.Helper()
	s := &single{machine: newMachine(t, "machine", "192.0.2.1")}
	resolver := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(resolver, []byte("nameserver 192.0.2.53\n"), 0o644); err != nil { // a server that does not exist: no query leaves the machine
		t.Fatal(err)
	}
	for _, command := range []string{
		"mkdir -p /var/lib/kctl", "mount --bind " + s.dir + " /var/lib/kctl", "mount --bind " + resolver + " /etc/resolv.conf",
		"ip link add uplink type veth peer name nowhere", "ip link set nowhere up",
		"ip addr add 192.0.2.1/24 dev uplink", "ip link set uplink up", "ip route add default dev uplink",
	} {
		s.run(t, command)
	}
	t.Cleanup(func() { s.takeDown(t) })
	return s
}

// bash runs a script on the machine, with our programs and those of $PATH; it
// must succeed. Its background processes go on.
func (s *single) bash(t *testing.T, dir, path, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	out, err := os.CreateTemp(s.t.TempDir(), "out") // not a pipe, which background processes would hold open
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.told = append(s.told, out.Name())
	cmd := s.command(ctx, "bash", "-euo", "pipefail", "-c", "cd "+dir+"\n"+script) // entering a mount namespace changes to its root
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "PATH="+s.bin+":"+path+":"+os.Getenv("PATH"), "KUBECONFIG=/var/lib/kctl/admin.kubeconfig")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Run()
	if cmd.Process != nil {
		s.groups = append(s.groups, cmd.Process.Pid)
	}
	text, readErr := os.ReadFile(out.Name())
	if err = errors.Join(err, readErr); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, text)
	}
	return string(text)
}

// takeDown ends what scripts left running, and then the cluster if it is still
// there.
func (s *single) takeDown(t *testing.T) {
	for _, group := range s.groups {
		if unix.Kill(-group, unix.SIGTERM) != nil {
			continue // none is left
		}
		harness.Eventually(t, patience, func() error {
			if unix.Kill(-group, 0) == nil {
				return errors.New("the processes of a script go on: group " + strconv.Itoa(group))
			}
			return nil
		})
	}
	if t.Failed() {
		s.showLogs()
		for _, file := range s.told {
			text, _ := os.ReadFile(file)
			t.Logf("--- the end of what a script said\n%s", text[max(0, len(text)-6000):])
		}
		const look = "kctl describe pods -A; kctl logs -n kube-system -l k8s-app=kube-dns; iptables -t nat -S KUBE-SERVICES; ps -ef | grep kube-"
		seen := s.command(context.Background(), "sh", "-c", look)
		seen.Env = append(os.Environ(), "PATH="+s.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+s.dir+"/admin.kubeconfig")
		out, _ := seen.CombinedOutput()
		t.Logf("%s", out)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "cluster.json")); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if out, err := s.command(ctx, s.bin+"/kctl", "down", "--dir", "/var/lib/kctl").CombinedOutput(); err != nil {
		t.Errorf("kctl down: %v\n%s", err, out)
	}
}

// TestStart follows the first steps of README.md and docs/start.md, from `make
// run` to `make down`.
func TestStart(t *testing.T) {
	harness.NeedLong(t, "it builds everything")
	harness.NeedRoot(t)
	if _, err := exec.LookPath("make"); err != nil {
		t.Fatal(err)
	}
	s := newSingle(t)
	readme, start := harness.OpenPage(t, "README.md"), harness.OpenPage(t, "docs/start.md")
	script := ""
	for range 2 {
		script += readme.Take(t, "Two commands")
	}
	script += "make down\n"
	// On this page, test/docs runs the blocks between those of this test.
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "start.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, b := range harness.Blocks(string(text)) {
		if b.Reason != "" {
			continue // only readers can run it
		}
		if !b.Run {
			b.Text = "cd " + harness.Root() + "\n" + start.Take(t, b.Under)
		}
		script += b.Text + "cd " + dir + "\n"
	}
	s.bash(t, harness.Root(), "", script)
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
