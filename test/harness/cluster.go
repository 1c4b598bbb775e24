package harness

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a cluster of the test's own.
type Cluster struct {
	Dir  string
	Port int
	Node string

	t   testing.TB
	bin string
	up  []string // the arguments of kctl up, for bringing it up again
}

// Options are what Start can be told.
type Options struct {
	Without []string // parts that are not started: "scheduler", "kubelet", …
	Flags   []string // more flags for kctl up
	Node    string   // "node-1" if empty
}

// NeedLong skips a test that takes long, unless long tests are asked for. why
// says what takes the time.
func NeedLong(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("KCTL_LONG") == "" {
		t.Skip("skipped: " + why + "; KCTL_LONG=1 asks for it (make test-long)")
	}
}

// NeedRoot skips the test unless it runs as root, and says why.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to run containers and make network links")
	}
}

// Start brings a cluster up, and takes it down when the test ends.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	NeedRoot(t)
	bin := Bin(t)
	if o.Node == "" {
		o.Node = "node-1"
	}
	dir, release := holdDir(t, bin)
	c := &Cluster{Dir: dir, Port: FreePort(t), Node: o.Node, t: t, bin: bin}
	c.up = append([]string{"up", "--dir", dir, "--port", strconv.Itoa(c.Port), "--node-name", o.Node}, o.Flags...)
	c.up = append(c.up, "--without="+strings.Join(o.Without, ",")) // if none, not those of another up either
	checkLeaks := WatchForLeaks(t, dir)
	t.Cleanup(func() {
		c.showLogs()
		if _, err := os.Stat(filepath.Join(dir, "cluster.json")); err == nil {
			if out, err := c.run(context.WithoutCancel(t.Context()), "down", "--dir", dir); err != nil {
				t.Errorf("kctl down: %v\n%s", err, out)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the cluster's directory: %v", err)
		}
		release()
		checkLeaks()
	})
	c.Up()
	return c
}

// Up starts whatever part of the cluster is not running.
func (c *Cluster) Up() {
	c.t.Helper()
	if out, err := c.run(c.t.Context(), c.up...); err != nil {
		c.t.Fatalf("kctl up: %v\n%s", err, out)
	}
}

// run runs kctl and returns its output, standard error included.
func (c *Cluster) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kctl"), args...)
	cmd.Env = c.Env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Env is the environment of a user of the cluster.
func (c *Cluster) Env() []string {
	return append(os.Environ(), "KUBECONFIG="+c.Kubeconfig("admin"), "HOME="+c.Dir, "PATH="+c.bin+":"+os.Getenv("PATH"))
}

// Kubeconfig is the kubeconfig file of admin, scheduler, controller-manager or
// kubelet.
func (c *Cluster) Kubeconfig(user string) string { return filepath.Join(c.Dir, user+".kubeconfig") }

// Bin is the path of one of the built programs.
func (c *Cluster) Bin(name string) string { return filepath.Join(c.bin, name) }

// Result is what a command printed, and its exit code.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs a command as the cluster's admin, with input on its standard input.
func (c *Cluster) Run(input string, name string, args ...string) Result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.Env()
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// Kctl runs kctl, which must succeed, and returns its standard output.
func (c *Cluster) Kctl(args ...string) string {
	c.t.Helper()
	return c.must(c.Run("", c.Bin("kctl"), args...), "kctl", args)
}

// KctlInput is Kctl with a standard input.
func (c *Cluster) KctlInput(input string, args ...string) string {
	c.t.Helper()
	return c.must(c.Run(input, c.Bin("kctl"), args...), "kctl", args)
}

// KctlFails runs kctl, which must fail, and returns its standard error.
func (c *Cluster) KctlFails(args ...string) string {
	c.t.Helper()
	r := c.Run("", c.Bin("kctl"), args...)
	if r.Code == 0 {
		c.t.Fatalf("kctl %s succeeded, but must not:\n%s%s", strings.Join(args, " "), r.Stdout, r.Stderr)
	}
	return r.Stderr
}

func (c *Cluster) must(r Result, name string, args []string) string {
	c.t.Helper()
	if r.Code != 0 {
		c.t.Fatalf("%s %s: exit code %d\n%s%s", name, strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Config is client-go's configuration for a user of the cluster.
func (c *Cluster) Config(user string) *rest.Config {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(user))
	if err != nil {
		c.t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// Client is a client-go client of the cluster's admin.
func (c *Cluster) Client() *kubernetes.Clientset {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.Config("admin"))
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// PID is the process id of one of the cluster's programs.
func (c *Cluster) PID(program string) int {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.Dir, "run", program+".pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// Kill kills a program with SIGKILL and waits until it is gone.
func (c *Cluster) Kill(program string) { c.Signal(program, syscall.SIGKILL) }

// Signal sends a program a signal and waits until it is gone.
func (c *Cluster) Signal(program string, signal syscall.Signal) {
	c.t.Helper()
	pid := c.PID(program)
	if err := syscall.Kill(pid, signal); err != nil {
		c.t.Fatalf("kill %s: %v", program, err)
	}
	Eventually(c.t, 30*time.Second, func() error {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(cmdline) == 0 {
			return nil
		}
		return fmt.Errorf("%s (process %d) still runs", program, pid)
	})
}

// showLogs prints the last part of each program's log if the test failed.
func (c *Cluster) showLogs() {
	if !c.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*.log"))
	for _, log := range logs {
		data, err := os.ReadFile(log)
		if err != nil {
			continue
		}
		const end = 4000
		if len(data) > end {
			data = data[len(data)-end:]
		}
		c.t.Logf("--- the end of %s\n%s", filepath.Base(log), data)
	}
}

// given are the ports that FreePort has returned; their users may not listen
// yet.
var given sync.Map

// FreePort returns a port on loopback that nobody listens on and that it has
// not returned before. It lies below the ephemeral ports, one of which the
// kernel could give to a connection a moment later, and below those that `kctl up`
// chooses, whose programs don't listen yet, either.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 12000 + rand.IntN(8000)
		if _, again := given.LoadOrStore(port, true); again {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			listener.Close()
			return port
		}
	}
	t.Fatal("no free port on 127.0.0.1")
	return 0
}

// Eventually calls try until it returns nil. After the given time the test
// fails with its last error; the time only bounds a failing test.
func Eventually(t testing.TB, within time.Duration, try func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("still after %s: %v", within, err)
		}
	}
}

// In returns the cluster for a subtest: failures are those of t.
func (c *Cluster) In(t testing.TB) *Cluster {
	sub := *c
	sub.t = t
	return &sub
}

// Restart ends a program with SIGTERM, as an operator does, and starts it
// again.
func (c *Cluster) Restart(program string) {
	c.t.Helper()
	c.Signal(program, syscall.SIGTERM)
	c.Up()
}
