package witness_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kctl/test/harness"
)

// TestHelm installs, tests, upgrades, rolls back and uninstalls a chart with
// what charts are made of: a custom resource, hooks, and pods to wait for.
func TestHelm(t *testing.T) {
	harness.NeedLong(t, "it builds helm")
	binary := harness.Helm.Build(t)
	c := harness.Start(t, harness.Options{})
	chart := filepath.Join(harness.Root(), "test", "witness", "testdata", "boat")
	helm := func(fails bool, args ...string) string {
		t.Helper()
		r := c.Run("", binary, args...)
		if (r.Code != 0) != fails {
			t.Fatalf("helm %s: exit code %d:\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
		}
		return r.Stdout + r.Stderr
	}
	says := func(what, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", what, w, got)
			}
		}
	}

	says("install", helm(false, "install", "skiff", chart, "--wait", "--timeout=90s"), "STATUS: deployed", "REVISION: 1")
	says("pods", c.Kctl("get", "pods", "-o", "name"), "pod/skiff-1")
	says("its kind", c.Kctl("get", "buoys", "-o", "jsonpath={.items[*].spec.color}"), "red")
	says("test", helm(false, "test", "skiff", "--logs", "--timeout=90s"), "Phase:          Succeeded", "word=ahoy")

	says("upgrade", helm(false, "upgrade", "skiff", chart, "--set=word=avast", "--wait", "--timeout=90s"), "REVISION: 2")
	if pods := c.Kctl("get", "pods", "-l", "app=skiff", "-o", "name"); strings.TrimSpace(pods) != "pod/skiff-2" {
		t.Errorf("after the upgrade there are %q", pods)
	}
	helm(true, "upgrade", "skiff", chart, "--set=command=nonsense", "--atomic", "--timeout=5s")
	says("history", helm(false, "history", "skiff"), "superseded", "Rollback to 2")
	says("values", helm(false, "get", "values", "skiff"), "word: avast")
	says("dry run", helm(false, "install", "other", chart, "--dry-run=server"), "pending-install")

	says("uninstall", helm(false, "uninstall", "skiff", "--wait", "--timeout=90s"), "uninstalled")
	if left := c.Kctl("get", "pods,configmaps,secrets,buoys", "-l", "app=skiff", "-o", "name") + c.Kctl("get", "secrets", "-o",
		"name"); strings.TrimSpace(left) != "" {
		t.Errorf("left: %s", left)
	}
}
