package compose_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kctl/test/harness"
)

// engine is a Docker engine in a network namespace of its own.
type engine struct {
	t         *testing.T
	dir       string
	namespace string // its file
	env       []string
	program   []string      // the Compose program: "docker-compose" or "docker compose"
	page      *harness.Page // the documentation whose commands are run, if any
}

const folder = "deploy/compose"

func startEngine(t *testing.T) *engine {
	t.Helper()
	harness.NeedRoot(t)
	for _, program := range []string{"dockerd", "docker", "docker-compose", "ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the test needs Debian's docker.io and docker-compose: %v", err)
		}
	}
	dir := harness.Dir(t) // t.TempDir is too long for sockets
	name := filepath.Base(dir)
	socket := "unix://" + dir + "/docker.sock"
	e := &engine{t: t, dir: dir, namespace: "/run/netns/" + name, env: append(os.Environ(), "DOCKER_HOST="+socket, "KCTL_PORT=6443")}
	e.must("ip", "netns", "add", name)
	t.Cleanup(func() { e.must("ip", "netns", "del", name) })
	e.must("nsenter", "--net="+e.namespace, "ip", "link", "set", "lo", "up")
	config := filepath.Join(dir, "daemon.json")
	if err := os.WriteFile(config, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	// Not by ip netns: it would hide the control groups.
	cmd := exec.Command("nsenter", "--net="+e.namespace, "dockerd", "--host="+socket, "--config-file="+config, "--bridge=none",
		"--data-root="+dir+"/data", "--exec-root="+dir+"/exec", "--pidfile="+dir+"/docker.pid", "--cgroup-parent=/"+name)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.stop(cmd, name) })
	harness.Eventually(t, 2*time.Minute, func() error {
		_, err := e.try("docker", "version")
		return err
	})
	return e
}

// stop ends the engine, and removes what it leaves behind.
func (e *engine) stop(cmd *exec.Cmd, name string) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if e.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(e.dir, "dockerd.log"))
		e.t.Logf("--- the end of dockerd.log\n%s", log[max(0, len(log)-4000):])
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, group := range append(groups, "/sys/fs/cgroup/"+name) {
		if err := os.Remove(group); err != nil && !errors.Is(err, os.ErrNotExist) {
			e.t.Errorf("left behind: %v", err)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.SplitSeq(string(mounts), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], e.dir+"/") {
			_ = unix.Unmount(fields[4], unix.MNT_DETACH)
			if !strings.HasSuffix(fields[4], "/exec/netns") {
				e.t.Logf("was still mounted: %s", fields[4])
			}
		}
	}
}

// try runs a command against the engine, in the folder of the compose file.
func (e *engine) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = filepath.Join(harness.Root(), folder), e.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

func (e *engine) must(name string, args ...string) string {
	e.t.Helper()
	out, err := e.try(name, args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// compose runs Compose, which must succeed.
func (e *engine) compose(args ...string) string {
	e.t.Helper()
	out, err := e.tryCompose(args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

func (e *engine) tryCompose(args ...string) (string, error) {
	return e.try(e.program[0], append(slices.Clone(e.program[1:]), args...)...)
}

// dial connects to an address from inside the engine's network namespace. A
// socket stays in the namespace in which it was made.
func (e *engine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	there, err := os.Open(e.namespace)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		return nil, back // the thread stays locked, so it ends with its goroutine
	}
	runtime.UnlockOSThread()
	return conn, err
}
