package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kctl/test/harness"
)

// TestRunEnds: if the cluster does not come up, `make run` ends with an error.
// It must not run a pod on whatever else answers on that port.
func TestRunEnds(t *testing.T) {
	bin := t.TempDir()
	called := filepath.Join(bin, "called")
	fake := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\n[ \"$1\" != up ]\n", called)
	if err := os.WriteFile(filepath.Join(bin, "kctl"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), filepath.Join(harness.Root(), "deploy", "local", "run.sh"), bin, t.TempDir(), "6443")
	if out, err := run.CombinedOutput(); err == nil {
		t.Errorf("run.sh ended well:\n%s", out)
	}
	calls, err := os.ReadFile(called)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(calls)); len(got) != 1 || got[0] != "up" {
		t.Errorf("kctl was called for %v", got)
	}
}
