package command

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"kctl/kubectl/internal/command/frame"
)

const asKctl = "KCTL_TEST_SIGNALS_DIR"

// Work that can't be cancelled, such as reading a kustomization from a pipe,
// goes on after the first Ctrl-C; the second one ends it.
func TestSecondSignalEnds(t *testing.T) {
	if dir := os.Getenv(asKctl); dir != "" {
		os.Exit(Main([]string{"kctl", "kustomize", dir}, frame.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "kustomization.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0], "-test.run=^TestSecondSignalEnds$")
	program.Env = append(os.Environ(), asKctl+"="+dir)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when it is opened for reading
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for range 100 {
		_ = program.Process.Signal(syscall.SIGTERM) // fails when it has ended
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("it ended by %v", err)
			}
			return
		case <-time.After(100 * time.Millisecond): // the first signal is being handled
		}
	}
	_ = program.Process.Kill()
	<-ended
	t.Error("signals did not end it")
}

// beProxy makes a test's process that startProxy has started kctl proxy.
func beProxy() {
	if file := os.Getenv(asKctl); file != "" {
		os.Exit(Main([]string{"kctl", "proxy", "--server=http://127.0.0.1:1", "--unix-socket=" + file}, frame.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
}

// startProxy starts a test's process again, as one that listens at the socket.
func startProxy(t *testing.T, program *exec.Cmd, socket string) {
	t.Helper()
	program.Env = append(os.Environ(), asKctl+"="+socket)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
}

// SIGTERM ends a command as it ends kubectl: by the signal, which supervisors don't take
// for a failure, but with everything cleaned up before.
func TestTerminated(t *testing.T) {
	beProxy()
	for sent, want := range map[syscall.Signal]string{syscall.SIGTERM: "signal: terminated", syscall.SIGINT: "exit status 130"} {
		socket := filepath.Join(t.TempDir(), "socket")
		program := exec.Command(os.Args[0], "-test.run=^TestTerminated$")
		startProxy(t, program, socket)
		if err := program.Process.Signal(sent); err != nil {
			t.Fatal(err)
		}
		if err := program.Wait(); err == nil || err.Error() != want {
			t.Errorf("after %v: %v, want %s", sent, err, want)
		}
		if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %v: the socket: %v", sent, err)
		}
	}
}

// What a script has put into its background is started without SIGINT, and goes on when
// Ctrl-C ends what is in front.
func TestInterruptIsNotForTheBackground(t *testing.T) {
	beProxy()
	program := exec.Command("/bin/sh", "-c", `trap "" INT; exec "$0" -test.run="^TestInterruptIsNotForTheBackground$"`, os.Args[0])
	startProxy(t, program, filepath.Join(t.TempDir(), "socket"))
	about, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", program.Process.Pid))
	if ignored := regexp.MustCompile(`SigIgn:\s*[0-9a-f]*[2367abef]\n`); err != nil || !ignored.Match(about) {
		t.Errorf("SIGINT is not ignored: %v\n%s", err, about)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it ended by %v", err)
	}
}
