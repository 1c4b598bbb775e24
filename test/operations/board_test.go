package operations_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kctl/test/harness"
)

// TestBoardIsGrafanas checks the dashboard against the types that Grafana
// publishes: it has no unknown field, and none of a wrong type.
func TestBoardIsGrafanas(t *testing.T) {
	harness.NeedLong(t, "it gets Grafana's types of dashboards from the npm registry")
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skipf("skipped: %v", err)
	}
	dir := t.TempDir()
	manifest, err := os.ReadFile("testdata/grafana/package.json")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := in("npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund"); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	compile := func(board []byte) (string, error) {
		const head = `import type { Dashboard } from "@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen";` + "\nexport const board: Dashboard = "
		if err := os.WriteFile(filepath.Join(dir, "board.ts"), append([]byte(head), board...), 0o644); err != nil {
			t.Fatal(err)
		}
		return in("node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext", "board.ts")
	}
	board := observability(t, "dashboard.json")
	if out, err := compile(board); err != nil {
		t.Errorf("the board does not fit Grafana's types: %v\n%s", err, out)
	}
	// If anything were accepted, the check above would show nothing.
	var failed *exec.ExitError
	if out, err := compile(bytes.Replace(board, []byte(`"gridPos"`), []byte(`"gridPlace"`), 1)); !errors.As(err, &failed) || !strings.Contains(out, "gridPlace") {
		t.Errorf("a board with a member that Grafana does not know: %v\n%s", err, out)
	}
}
