package kustomize

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// What kustomize documents of bases and overlays comes together in one: names,
// labels, generators with hashes, patches of both kinds, images, replicas, a
// component, a replacement.
func TestOverlay(t *testing.T) {
	got, err := YAML("testdata/overlay")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/overlay.golden"
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"

func TestWhatCannotBeMade(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", nil, "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization'"},
		{"a cycle", map[string]string{"top/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../top]\n"}, "cycle"},
		{"a missing file", map[string]string{"top/kustomization.yaml": "resources: [none.yaml]\n"}, "none.yaml"},
		{"a file outside", map[string]string{"top/kustomization.yaml": "resources: [../a.yaml]\n", "a.yaml": account}, "is not in or below"},
		{"one object twice", map[string]string{"top/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "top/a.yaml": account, "top/b.yaml": account}, "may not add resource with an already registered id"},
		{"an unknown field", map[string]string{"top/kustomization.yaml": "resorces: []\n"}, `unknown field "resorces"`},
		{"a chart", map[string]string{"top/kustomization.yaml": "helmCharts: [{name: x, repo: https://example.org, version: 1.0.0}]\n"}, "must specify --enable-helm"},
		{"a function", map[string]string{
			"top/kustomization.yaml": "transformers: [f.yaml]\n",
			"top/f.yaml":             "apiVersion: example.org/v1\nkind: Wonder\nmetadata: {name: a, annotations: {config.kubernetes.io/function: \"exec: {path: ./f.sh}\"}}\n",
		}, "plugins"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, c.files)
			if c.files == nil {
				_ = os.Mkdir(filepath.Join(dir, "top"), 0o750)
			}
			if out, err := YAML(filepath.Join(dir, "top")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q; %s", err, c.want, out)
			}
		})
	}
}

// A git on the PATH is not run, and the PATH is there again afterwards.
func TestNoGit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.yaml" {
			_, _ = w.Write([]byte(account))
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	programs, left := t.TempDir(), t.TempDir()
	ran := filepath.Join(programs, "ran")
	if err := os.WriteFile(filepath.Join(programs, "git"), []byte("#!/bin/sh\n: > "+ran+"\nexit 1\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	t.Setenv("TMPDIR", left)
	for _, address := range []string{
		"github.com/example/none", "https://github.invalid/example/none.git//base?ref=v1", "git@example.invalid:example/none.git",
		"ssh://git@example.invalid/example/none.git", "file:///none.git//base",
	} {
		for _, field := range []string{"resources", "components", "transformers", "generators"} {
			dir := write(t, map[string]string{"kustomization.yaml": field + ": [\"" + address + "\"]\n"})
			if _, err := YAML(dir); err == nil || !strings.Contains(err.Error(), "kctl does not run git") {
				t.Errorf("%s %s: %v", field, address, err)
			}
		}
	}
	if _, err := YAML("github.com/example/none"); err == nil || !strings.Contains(err.Error(), "kctl does not run git") {
		t.Errorf("a repository instead of a directory: %v", err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("git was run")
	}
	if entries, _ := os.ReadDir(left); len(entries) > 0 {
		t.Errorf("temporary files are left: %v", entries)
	}
	if os.Getenv("PATH") != programs {
		t.Errorf("the PATH is %q afterwards", os.Getenv("PATH"))
	}

	dir := write(t, map[string]string{"kustomization.yaml": "resources: [\"" + server.URL + "/none.yaml\"]\n"})
	if _, err := YAML(dir); err == nil || !strings.Contains(err.Error(), "status code 404") {
		t.Errorf("a file that the web has not: %v", err)
	}
	dir = write(t, map[string]string{"kustomization.yaml": "resources: [\"" + server.URL + "/a.yaml\"]\n"})
	if out, err := YAML(dir); err != nil || !strings.Contains(string(out), "ServiceAccount") {
		t.Errorf("a file from the web: %v, %s", err, out)
	}
}

func TestAnywhere(t *testing.T) {
	dir := write(t, map[string]string{"top/kustomization.yaml": "resources: [../a.yaml]\n", "a.yaml": account})
	built, err := Build(filepath.Join(dir, "top"), Options{Anywhere: true})
	if err != nil || built.Size() != 1 {
		t.Errorf("%v, %v", built, err)
	}
}
