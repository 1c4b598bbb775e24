package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	for name, content := range map[string]string{"service.yaml": "{apiVersion: v1, kind: Service, metadata: {name: one}}",
		"kustomization.yaml": "resources: [service.yaml]"} {
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

// Labels narrow what files name, too: by what the server has of an object, and by the file in
// verbs that don't read it first. Those that are none are refused.
func TestLabelsOfWhatFilesName(t *testing.T) {
	const file, stored = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","labels":{"by":"file"}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","namespace":"default","labels":{"by":"server"}}}`
	var written atomic.Int32
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			written.Add(1)
		}
		switch r.URL.Path {
		case "/api/v1/namespaces/default/pods/one":
			fmt.Fprint(w, stored)
		case "/api/v1/namespaces/default/pods": // asked for by its name
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, stored)
		default:
			fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","items":[]}`)
		}
	})
	for line, by := range map[string]string{
		"get": "server", "get -o name": "server", "describe": "server", "label a=b": "server", "annotate a=b": "server",
		"wait --for=jsonpath={.kind}=Pod --timeout=0": "server", "delete --wait=false": "file",
	} {
		for _, label := range []string{"by=server", "by=file", "by in", "by in (file"} {
			c := kctl(t, host, file, append(strings.Fields(line), "-f", "-", "-l", label)...)
			wrote := written.Swap(0) > 0
			if acts := wrote || strings.Contains(c.out.String(), "one"); acts != (label == "by="+by) {
				t.Errorf("%s -l %q: acts: %t; says %s%s", line, label, acts, c.out.String(), c.err.String())
			}
			if refused := c.code == 1 && strings.Contains(c.err.String(), "the provided selector"); refused != strings.Contains(label, " ") {
				t.Errorf("%s -l %q: code %d, complained %s", line, label, c.code, c.err.String())
			}
		}
	}
}
