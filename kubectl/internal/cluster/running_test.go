package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Flags for a program that runs already are for its next start: who gives them is told,
// or an API server would be on another etcd after it died, to everybody's surprise.
func TestFlagsForAProgramThatRuns(t *testing.T) {
	l := layout(t)
	if _, err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", "/dev/null", l.path("x") + "/"}
	tail, err := exec.LookPath("tail")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(tail)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tail")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	running := exec.Command(path, args...)
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Process.Kill(); _ = running.Wait() }()
	pid := strconv.Itoa(running.Process.Pid)
	if err := os.WriteFile(l.PIDFile(Apiserver), []byte(pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := l.wasRunning(program{name: Apiserver, args: args}); got != "was running" {
		t.Errorf("as it was started: %s", got)
	}
	if got := l.wasRunning(program{name: Apiserver, args: append(args, "--etcd-servers=http://127.0.0.1:9")}); got != "was running; `kill "+pid+
		"`, and this command again, would start it with --etcd-servers=http://127.0.0.1:9" {
		t.Errorf("with another etcd: %s", got)
	}
	if got := l.wasRunning(program{name: Apiserver, path: path, args: args[:2]}); !strings.HasSuffix(got, "would start it without "+args[2]) {
		t.Errorf("without a flag: %s", got)
	}
	if got, want := l.runsOn(Apiserver), "runs on: it is left out from its next start; `kill "+pid+"` ends it"; got != want {
		t.Errorf("left out: %s", got)
	}
	// As a build replaces a program that runs: by another file of the name.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := l.wasRunning(program{name: Apiserver, path: path, args: args}); got != "was running; `kill "+pid+
		"`, and this command again, would start what is in "+path+" now" {
		t.Errorf("with a newer build: %s", got)
	}
	if got := l.wasRunning(program{name: Apiserver, path: path, args: args[:2]}); !strings.HasSuffix(got,
		"would start what is in "+path+" now, without "+args[2]) {
		t.Errorf("with a newer build, and without a flag: %s", got)
	}
}

// Flags that can't be split are not kept.
func TestFlagsThatCannotBeSplit(t *testing.T) {
	o := UpOptions{Port: 1, Flags: map[string]string{Kubelet: "'--max-pods"}}
	if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--kubelet-flags: ") {
		t.Errorf("got %v", err)
	}
}
