package hosts_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"kctl/test/harness"
)

// machine is a network namespace and a mount namespace that live as long as
// their holder process.
type machine struct {
	name    string
	address string
	dir     string // for the programs that run there
	t       *testing.T
	bin     string
	holder  *exec.Cmd
	kubelet *exec.Cmd
	args    []string // the kubelet's
}

// holding sets a machine up and waits to be killed. What runtimes keep outside
// their own directories goes with the mount namespace. If a test is killed, the
// namespace is found by its first mount (harness.Dir).
const holding = `
ip link set lo up
mkdir -p /run/netns /var/lib/cni
mount -t tmpfs $0 /run/netns
mount -t tmpfs tmpfs /var/lib/cni
echo ready
exec sleep infinity`

func newMachine(t *testing.T, name, address string) *machine {
	t.Helper()
	dir := harness.Dir(t)
	m := &machine{name: name, address: address, dir: dir, t: t, bin: harness.Bin(t)}
	leaks := harness.WatchForLeaks(t, dir)
	m.holder = exec.Command("unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", holding, filepath.Base(dir))
	m.holder.Stderr = os.Stderr
	out, err := m.holder.StdoutPipe()
	if err == nil {
		err = m.holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.end(leaks) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s: %q %v", name, line, err)
	}
	return m
}

// end ends what runs on the machine, and then the machine.
func (m *machine) end(leaks func()) {
	m.stopKubelet(syscall.SIGTERM)
	if m.t.Failed() {
		m.showLogs()
	}
	if _, err := os.Stat(filepath.Join(m.dir, "cluster.json")); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if out, err := m.command(ctx, m.bin+"/kctl", "down", "--dir", m.dir).CombinedOutput(); err != nil {
			m.t.Errorf("%s: kctl down: %v\n%s", m.name, err, out)
		}
	}
	_ = m.holder.Process.Kill()
	_ = m.holder.Wait()
	if err := os.RemoveAll(m.dir); err != nil {
		m.t.Errorf("%s: %v", m.name, err)
	}
	leaks()
}

// command makes a command that runs on the machine.
func (m *machine) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--target", strconv.Itoa(m.holder.Process.Pid), "--net", "--mount", "--", name}, args...)...)
}

// run runs a command on the machine, which must succeed.
func (m *machine) run(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	words := strings.Fields(command)
	out, err := m.command(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s: %v\n%s", m.name, command, err, out)
	}
	return string(out)
}

// inside runs f on a thread in the machine's network namespace, and then ends
// the thread.
func (m *machine) inside(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.holder.Process.Pid))
		if err == nil {
			defer ns.Close()
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// dial connects from inside the machine.
func (m *machine) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = m.inside(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// listen listens inside the machine.
func (m *machine) listen(t *testing.T, address string) (l net.Listener) {
	t.Helper()
	err := m.inside(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startKubelet starts the kubelet, again with the data that it had. The flags
// in more come last.
func (m *machine) startKubelet(t *testing.T, more ...string) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(m.dir, "log", "kubelet.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// nsenter execs the kubelet, so the process id is the kubelet's: it forks only
	// for a PID namespace.
	args := append([]string{"--target", strconv.Itoa(m.holder.Process.Pid), "--net", "--mount", "--", m.bin + "/kubelet"}, m.args...)
	m.kubelet = exec.Command("nsenter", append(args, more...)...)
	m.kubelet.Stdout, m.kubelet.Stderr = log, log
	if err := m.kubelet.Start(); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) stopKubelet(signal syscall.Signal) {
	if m.kubelet == nil {
		return
	}
	_ = m.kubelet.Process.Signal(signal)
	_ = m.kubelet.Wait()
	m.kubelet = nil
}

// log is the log of a program on the machine.
func (m *machine) log(t *testing.T, program string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(m.dir, "log", program+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (m *machine) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(m.dir, "log", "*.log"))
	for _, log := range logs {
		if data, err := os.ReadFile(log); err == nil {
			m.t.Logf("--- %s: the end of %s\n%s", m.name, filepath.Base(log), data[max(0, len(data)-3000):])
		}
	}
}
