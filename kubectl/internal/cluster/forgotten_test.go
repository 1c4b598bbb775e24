package cluster

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// A process that the runtime forgot ends with the cluster, and its cgroups are
// removed.
func TestForgottenProcessesEnd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root, to make control groups")
	}
	l := layout(t)
	hierarchy := "/sys/fs/cgroup"
	if _, err := os.Stat(hierarchy + "/cgroup.controllers"); err != nil {
		hierarchy += "/pids" // cgroup v1
	}
	group := filepath.Join(hierarchy, l.CgroupRoot(), "pod1", "container1")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.removeCgroups() })
	forgotten := exec.Command("sleep", "infinity")
	if err := forgotten.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = forgotten.Process.Kill() })
	pid := []byte(strconv.Itoa(forgotten.Process.Pid))
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forgotten.Wait() }()
	if err := l.cleanMachine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the forgotten process ended with %v, want a kill", err)
	}
	if _, err := os.Stat(filepath.Join(hierarchy, l.CgroupRoot())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cgroup is there: %v", err)
	}
}

// Down ends the shims of its own cluster, and not those of one whose directory has a name
// that ends like its own's.
func TestAnotherClustersShimsStay(t *testing.T) {
	base := t.TempDir()
	shim := filepath.Join(base, "containerd-shim-runc-v2")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\necho started\nread line\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := Layout{Dir: filepath.Join("/", filepath.Base(filepath.Dir(base)), "cluster")}
	start := func(dir string) (stdin io.WriteCloser, ended chan error) {
		cmd := exec.Command(shim, "-namespace", "k8s.io", "-address", filepath.Join(dir, "run", "containerd.sock"))
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := stdout.Read(make([]byte, 1)); err != nil { // it is the script by now
			t.Fatal(err)
		}
		ended = make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		return stdin, ended
	}
	_, ours := start(l.Dir)
	stdin, another := start(filepath.Join("/srv", l.Dir))
	if err := l.killLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ours; err == nil {
		t.Error("the cluster's own shim has ended by itself")
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Error(err)
	}
	if err := <-another; err != nil {
		t.Errorf("the shim of the cluster in /srv%s ended: %v", l.Dir, err)
	}
}
