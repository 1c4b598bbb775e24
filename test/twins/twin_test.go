package twins_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kctl/test/harness"
)

// patience only bounds a failing test.
const patience = 3 * time.Minute

// twin is a program of upstream's.
type twin struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// startTwin starts a program of upstream's beside a cluster, until the test
// ends. Its log is among those that a failed test shows.
func startTwin(t testing.TB, c *harness.Cluster, binary string, args ...string) *twin {
	t.Helper()
	name := filepath.Base(binary)
	p := &twin{t: t, name: name, done: make(chan struct{})}
	log, err := os.OpenFile(filepath.Join(c.Dir, "log", "upstream-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.Dir, log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.stop)
	return p
}

// stop ends the program with SIGTERM and waits for it.
func (p *twin) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("%s did not end by SIGTERM", p.name)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// until waits for what the program should bring about, as long as it runs.
func (p *twin) until(try func() error) {
	p.t.Helper()
	ended := false
	harness.Eventually(p.t, patience, func() error {
		select {
		case <-p.done:
			ended = true
			return nil
		default:
			return try()
		}
	})
	if ended {
		p.t.Fatalf("%s has ended: %v", p.name, p.cmd.ProcessState)
	}
}

// flagsOf are the flags with which kctl runs one of our programs, but for those
// that its twin does not have.
func flagsOf(t testing.TB, c *harness.Cluster, program string, ours ...string) []string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.PID(program)))
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	for _, flag := range strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")[1:] {
		name, _, _ := strings.Cut(flag, "=")
		if !slices.Contains(ours, name) {
			flags = append(flags, flag)
		}
	}
	return flags
}
