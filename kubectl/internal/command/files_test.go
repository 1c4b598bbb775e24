package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// -R is true by default in those verbs in which kubectl has it so, and may stand beside -k
// there; run ignores files, as kubectl's does.
func TestRecursiveByDefault(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"service.yaml": "{apiVersion: v1, kind: Service, metadata: {name: one}}", "kustomization.yaml": "resources: [service.yaml]"} {
		if err := os.WriteFile(filepath.Join(below, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, found := range map[string]bool{
		"annotate a=b --local -o name -k BELOW":           true,
		"label a=b --local -o name -k BELOW":              true,
		"label a=b --local -o name -R -k BELOW":           false,
		"run x --image=a --dry-run=client -k BELOW -R":    true,
		"run x --image=a --dry-run=client -f none":        true,
		"label a=b --local -o name -f BELOW/service.yaml": true,
	} {
		c := kctl(t, "", "", strings.Fields(strings.ReplaceAll(line, "BELOW", below))...)
		if (c.code == 0) != found {
			t.Errorf("%s: code %d: %s", line, c.code, c.err.String())
		}
	}
	if err := os.Remove(filepath.Join(below, "kustomization.yaml")); err != nil {
		t.Fatal(err)
	}
	for line, found := range map[string]bool{
		"annotate a=b --local -o name -f DIR": true, "annotate a=b --local -o name -R=false -f DIR": false, "label a=b --local -o name -f DIR": false,
		"set selector a=b --local -o name -f DIR": true, "set selector a=b --local -o name -R=false -f DIR": false,
	} {
		c := kctl(t, "", "", strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		if got := strings.Contains(c.out.String(), "service/one"); got != found {
			t.Errorf("%s: found %t, want %t: %s", line, got, found, c.err.String())
		}
	}
}
