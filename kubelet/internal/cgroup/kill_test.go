package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/cgroups"
)

// at is a group in some directories.
type at struct {
	cgroups.Manager
	dirs map[string]string
}

func (a at) GetPaths() map[string]string { return a.dirs }

// A kubelet in a PID namespace of its own that sees another's control groups ended itself,
// with everything that was started with it: processes that it can't see are called 0.
func TestProcessesOfAnotherPIDNamespaceAreLeftAlone(t *testing.T) {
	cgroups.TestMode = true // these are files
	defer func() { cgroups.TestMode = false }()
	dir := t.TempDir()
	container := filepath.Join(dir, "container")
	if err := os.Mkdir(container, 0o700); err != nil {
		t.Fatal(err)
	}
	for of, pids := range map[string]string{dir: "", container: "0\n0\n"} {
		if err := os.WriteFile(filepath.Join(of, "cgroup.procs"), []byte(pids), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := kill(at{dirs: map[string]string{"": dir, "cpu": filepath.Join(dir, "none")}}); !errors.Is(err, errForeign) {
		t.Errorf("error %v", err)
	}
}
