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

// Cluster is a cluster that a test has to itself.
type Cluster struct {
	Dir  string
	Port int
	Node string

	t   testing.TB
	bin string
	up  []string // the arguments of kctl up, to bring it up again
}

// Options of Start.
type Options struct {
	Without []string // parts that are not started: "scheduler", "kubelet", …
	Flags   []string // more flags for kctl up
	Node    string   // "node-1" if empty
}

// NeedLong skips a test that takes longer than a test run should, unless such
// tests are asked for; why says what takes the time.
func NeedLong(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("KCTL_LONG") == "" {
		t.Skip("skipped: " + why + "; KCTL_LONG=1 asks for it (make test-long)")
	}
}

// NeedRoot skips the test, saying why, where it can't make containers.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to run containers and make network links")
	}
}

// Start brings a cluster up and has it taken down when the test ends.
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
	if len(o.Without) > 0 {
		c.up = append(c.up, "--without="+strings.Join(o.Without, ","))
	}
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

// Up starts whatever of the cluster is not running.
func (c *Cluster) Up() {
	c.t.Helper()
	if out, err := c.run(c.t.Context(), c.up...); err != nil {
		c.t.Fatalf("kctl up: %v\n%s", err, out)
	}
}

// run runs kctl and returns what it printed, errors included.
func (c *Cluster) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kctl"), args...)
	cmd.Env = c.Env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Env is the environment in which a user of the cluster works.
func (c *Cluster) Env() []string {
	return append(os.Environ(), "KUBECONFIG="+c.Kubeconfig("admin"), "HOME="+c.Dir, "PATH="+c.bin+":"+os.Getenv("PATH"))
}

// Kubeconfig is the kubeconfig file of admin, scheduler, controller-manager or
// kubelet.
func (c *Cluster) Kubeconfig(user string) string { return filepath.Join(c.Dir, user+".kubeconfig") }

// Bin is the path of one of the built programs.
func (c *Cluster) Bin(name string) string { return filepath.Join(c.bin, name) }

// Result is what a command printed and how it ended.
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

// KctlInput is Kctl with something on its standard input.
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

// Client is upstream's client, as the cluster's admin.
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

// Kill ends a program the hard way and waits until it is gone.
func (c *Cluster) Kill(program string) { c.Signal(program, syscall.SIGKILL) }

// Signal ends a program by a signal and waits until it is gone.
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

// showLogs prints the ends of the programs' logs where the test failed.
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

// given are the ports that FreePort has returned: whoever asked may not listen yet.
var given sync.Map

// FreePort returns a port on loopback that nobody listens on and that it has not
// returned before, from below those that the kernel gives to connections: one of
// them could have it a moment later.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
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

// Eventually tries until try returns nil; what it returned last fails the test
// after the given time. The time only bounds a failing test.
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

// In returns the cluster for a subtest: what fails, fails t.
func (c *Cluster) In(t testing.TB) *Cluster {
	sub := *c
	sub.t = t
	return &sub
}

// Restart ends a program as an operator does, and brings it up again.
func (c *Cluster) Restart(program string) {
	c.t.Helper()
	c.Signal(program, syscall.SIGTERM)
	c.Up()
}
