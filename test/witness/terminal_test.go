package witness_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kctl/test/harness"
)

// terminal is a pseudo-terminal, with kctl running on it as for a person.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File // kept open to read its settings after kctl has ended

	mu     sync.Mutex
	screen strings.Builder
	read   chan struct{} // closed when there is nothing more to read
}

// muchTime is what a step may take on a busy machine.
const muchTime = 2 * time.Minute

// onTerminal starts kctl on a new pseudo-terminal.
func onTerminal(t *testing.T, c *harness.Cluster, env []string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatalf("pseudo-terminal: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, master: master, slave: slave, read: make(chan struct{}), cmd: exec.CommandContext(t.Context(), c.Bin("kctl"), args...)}
	x.cmd.Env = append(append(c.Env(), "TERM=xterm"), env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go x.follow()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill() // has ended long ago unless the test failed
		slave.Close()
		master.Close()
		<-x.read
	})
	return x
}

// follow collects what is written to the terminal until it is closed.
func (x *terminal) follow() {
	defer close(x.read)
	buffer := make([]byte, 4096)
	for {
		n, err := x.master.Read(buffer)
		x.mu.Lock()
		x.screen.Write(buffer[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// shows waits until a text has been written.
func (x *terminal) shows(text string) {
	x.t.Helper()
	harness.Eventually(x.t, muchTime, func() error {
		if shown := x.shown(); !strings.Contains(shown, text) {
			return fmt.Errorf("%q is not on the terminal:\n%s", text, shown)
		}
		return nil
	})
}

// types sends keys.
func (x *terminal) types(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, keys); err != nil {
		x.t.Fatal(err)
	}
}

// ends waits for kctl to end with the exit code. The terminal must be as
// before: in line mode, with echo.
func (x *terminal) ends(code int) {
	x.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- x.cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			x.t.Fatal(err)
		}
	case <-time.After(muchTime):
		x.t.Fatalf("kctl has not ended:\n%s", x.shown())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d:\n%s", got, code, x.shown())
	}
	settings, err := unix.IoctlGetTermios(int(x.slave.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	if usual := uint32(unix.ICANON | unix.ECHO | unix.ISIG); settings.Lflag&usual != usual {
		x.t.Errorf("the terminal is left in raw mode: %#x", settings.Lflag)
	}
}

const interrupt = "\x03"

// TestTerminal uses kctl's interactive verbs through a terminal, as a person
// does.
func TestTerminal(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	shell := c.Shell()
	c.Kctl("run", "stays", "--image="+shell, "--image-pull-policy=IfNotPresent", "-i", "-t", "--attach=false", "--leave-stdin-open",
		"--restart=Never", "--command", "--", "sh", "-c", "while read line; do echo heard $line; done")
	for _, part := range []struct {
		name string
		do   func(t *testing.T, c *harness.Cluster, shell string)
	}{
		{"run", runInteractively}, {"exec", execInteractively}, {"attach", attachInteractively}, {"edit", editInteractively},
		{"debug", debugInteractively}, {"brief", runBriefly}, {"dumb", runOnLinesOnly}, {"interrupts", interruptRun}, {"copies", copies},
	} {
		t.Run(part.name, func(t *testing.T) { part.do(t, c.In(t), shell) })
	}
}

func runInteractively(t *testing.T, c *harness.Cluster, shell string) {
	x := onTerminal(t, c, nil, "run", "comes", "-it", "--rm", "--image="+shell, "--image-pull-policy=IfNotPresent", "--restart=Never", "--command", "--", "sh")
	x.shows("try pressing enter")
	x.types("echo $((6*7))-from-$(tty)\n")
	x.shows("42-from-/dev/")
	x.types("exit 3\n")
	x.ends(3)
	x.shows(`pod "comes" deleted`)
	if left := c.Kctl("get", "pod", "comes", "--ignore-not-found"); left != "" && !strings.Contains(left, "Terminating") {
		t.Errorf("the pod is still there: %s", left)
	}
}

// runBriefly: the output of a container that ends at once is shown, whether or
// not kctl could attach in time. --force and --grace-period belong to --rm.
func runBriefly(t *testing.T, c *harness.Cluster, shell string) {
	for i := range 6 {
		if said := c.Kctl("run", fmt.Sprintf("brief-%d", i), "-i", "--rm", "--quiet", "--force", "--grace-period=0", "--restart=Never",
			"--image="+shell, "--image-pull-policy=IfNotPresent", "--command", "--", "echo", "said"); said != "said\n" {
			t.Errorf("run %d showed %q", i, said)
		}
	}
}

// runOnLinesOnly: what moves the cursor or colours text would be shown as it is.
func runOnLinesOnly(t *testing.T, c *harness.Cluster, shell string) {
	x := onTerminal(t, c, []string{"TERM=dumb"}, "run", "lines", "--image="+shell, "--image-pull-policy=IfNotPresent", "--restart=Never", "--command", "--",
		"sleep", "1000")
	x.shows("\nready\r\n")
	x.ends(0)
	if shown := x.shown(); strings.Contains(shown, "\x1b") {
		t.Errorf("the terminal shows %q", shown)
	}
}

func execInteractively(t *testing.T, c *harness.Cluster, _ string) {
	// The pod may be named by a file as well as by an argument.
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: Pod, metadata: {name: stays}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := c.Kctl("exec", "-f", file, "--", "echo", "here"); said != "here\n" {
		t.Errorf("exec -f showed %q", said)
	}
	if said := c.KctlFails("exec", "-f", file, "stays", "--", "echo", "here"); !strings.Contains(said,
		"resource/name arguments cannot be provided when a path is specified") {
		t.Errorf("exec -f with a name said %q", said)
	}
	x := onTerminal(t, c, nil, "exec", "-it", "stays", "--", "sh")
	x.types("echo $((20+3))-is-here\n")
	x.shows("23-is-here")
	// Ctrl-C goes to the container: it ends the sleep there, and not kctl.
	x.types("echo sleeping-$((1+1)); sleep 1000\n")
	x.shows("sleeping-2")
	x.types(interrupt)
	x.types("echo awake-$((2+2))\n")
	x.shows("awake-4")
	x.types("exit 5\n")
	x.ends(5)
}

func attachInteractively(t *testing.T, c *harness.Cluster, _ string) {
	x := onTerminal(t, c, nil, "attach", "-it", "stays")
	x.shows("try pressing enter")
	x.types("hello\n")
	x.shows("heard hello")
	x.types("\x04") // end of input, and so of the container
	x.ends(0)
}

func editInteractively(t *testing.T, c *harness.Cluster, _ string) {
	c.Kctl("create", "configmap", "edited", "--from-literal=a=b")
	editor := filepath.Join(t.TempDir(), "editor.sh")
	script := "#!/bin/sh\necho what shall it be\nread answer\nsed -i \"s/a: .*/a: $answer/\" \"$1\"\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, c, []string{"KUBE_EDITOR=" + editor}, "edit", "configmap", "edited")
	x.shows("what shall it be")
	x.types("typed\n")
	x.shows("configmap/edited edited")
	x.ends(0)
	if got := c.Kctl("get", "configmap", "edited", "-o", "jsonpath={.data.a}"); got != "typed" {
		t.Errorf("the config map says %q", got)
	}
	// A refused change is opened again, with the reason in it. Giving up keeps the
	// file.
	x = onTerminal(t, c, []string{"KUBE_EDITOR=" + editor, "TMPDIR=" + t.TempDir()}, "edit", "configmap", "edited")
	x.shows("what shall it be")
	x.types("[1\n")
	x.shows("edited-file")
	x.types("[1\n")
	x.shows("no valid changes were saved")
	x.ends(1)
}

func debugInteractively(t *testing.T, c *harness.Cluster, shell string) {
	c.Kctl("run", "sick", "--image="+shell, "--image-pull-policy=IfNotPresent", "--command", "--", "sleep", "1000")
	x := onTerminal(t, c, nil, "debug", "sick", "-it", "--image="+shell, "--image-pull-policy=IfNotPresent", "--target=sick", "--", "sh")
	x.shows("Defaulting debug container name to debugger-")
	x.types("echo $((30+3))-in-debugger\n")
	x.shows("33-in-debugger")
	x.types("exit\n")
	x.ends(0)
	c.Kctl("delete", "pod", "sick", "--grace-period=1")
}

func interruptRun(t *testing.T, c *harness.Cluster, shell string) {
	// Interrupted while it waits for an image that does not exist.
	x := onTerminal(t, c, nil, "run", "never", "--image="+shell+"-not", "--restart=Never")
	x.shows("never")
	x.shows("ErrImagePull")
	x.types(interrupt)
	x.ends(130)
	x.shows(`Pod "never" is still there`)
	c.Kctl("delete", "pod", "never", "--grace-period=1")
	// Interrupted while it waits to attach: --rm removes the pod.
	x = onTerminal(t, c, nil, "run", "gone", "-it", "--rm", "--image="+shell+"-not", "--restart=Never")
	x.shows("ErrImagePull")
	x.types(interrupt)
	x.ends(130)
	c.Kctl("wait", "--for=delete", "pod/gone", "--timeout=60s")
}

func copies(t *testing.T, c *harness.Cluster, shell string) {
	c.Kctl("run", "has", "--image="+shell, "--image-pull-policy=IfNotPresent", "--command", "--", "sleep", "1000")
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	large := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB: many messages in any protocol
	if err := os.WriteFile(there, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Kctl("cp", there, "has:/tmp/new-name")
	c.Kctl("cp", "default/has:/tmp/new-name", filepath.Join(dir, "back"))
	if back, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || string(back) != large {
		t.Errorf("copied there and back: %d bytes of %d, %v", len(back), len(large), err)
	}
	c.Kctl("cp", dir, "has:/tmp/fresh/") // a slash behind a name that is not there changes nothing
	if listed := c.Kctl("exec", "has", "--", "ls", "/tmp/fresh"); listed != "back\nthere\n" {
		t.Errorf("in the copied directory is %q", listed)
	}
	// A small one: containerd 1.6 may keep an exec whose process ends before it has read its input.
	small := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(small, []byte("small"), 0o600); err != nil {
		t.Fatal(err)
	}
	if done := c.Run("", c.Bin("kctl"), "cp", small, "has:/not/there"); done.Code != 1 || !strings.Contains(done.Stderr, "command terminated with exit code 1") {
		t.Errorf("below a directory that is not there: %+v", done)
	}
	if said := c.KctlFails("cp", "has:/not/there", dir); !strings.Contains(said, "/not/there") {
		t.Errorf("of a file that is not there: %s", said)
	}
	c.Kctl("delete", "pod", "has", "--grace-period=1")
}
