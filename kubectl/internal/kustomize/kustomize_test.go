package kustomize

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// What kustomize documents for bases and overlays, in one test: names, labels,
// generators with hashes, patches of both kinds, images, replicas, a component,
// a replacement.
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
		{"one object twice", map[string]string{"top/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "top/a.yaml": account, "top/b.yaml": account},
			"may not add resource with an already registered id"},
		{"an unknown field", map[string]string{"top/kustomization.yaml": "resorces: []\n"}, `unknown field "resorces"`},
		{"a chart", map[string]string{"top/kustomization.yaml": "helmCharts: [{name: x, repo: https://example.org, version: 1.0.0}]\n"},
			"must specify --enable-helm"},
		{"a function", map[string]string{
			"top/kustomization.yaml": "transformers: [f.yaml]\n",
			"top/f.yaml": "apiVersion: example.org/v1\nkind: Wonder\nmetadata: {name: a, annotations: {config.kubernetes.io/function: " +
				"\"exec: {path: ./f.sh}\"}}\n",
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

// commit makes a directory a repository of one commit.
func commit(t *testing.T, repository string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "one"}} {
		if out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// What a kustomization names by a repository's URL is fetched by git.
func TestRepositories(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: there is no git on the PATH")
	}
	repository := write(t, map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": account})
	commit(t, repository)
	left := t.TempDir()
	t.Setenv("TMPDIR", left)
	dir := write(t, map[string]string{"kustomization.yaml": "namePrefix: x-\nresources: [\"file://" + repository + "//base\"]\n"})
	if out, err := YAML(dir); err != nil || !strings.Contains(string(out), "name: x-a") {
		t.Errorf("%v, %s", err, out)
	}
	if _, err := YAML("file://" + repository + "//none"); err == nil {
		t.Error("a directory that the repository has not")
	}
	if entries, _ := os.ReadDir(left); len(entries) > 0 {
		t.Errorf("temporary files are left: %v", entries)
	}
}

// What it names by a web address is downloaded.
func TestFilesFromTheWeb(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/a.yaml" {
			_, _ = w.Write([]byte(account))
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	dir := write(t, map[string]string{"kustomization.yaml": "resources: [\"" + server.URL + "/a.yaml\"]\n"})
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

// A ref that git would take for an option makes it run any program: such a kustomization
// is refused, be it at the top, in a base or in a repository.
func TestRefsThatAreOptions(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: there is no git on the PATH")
	}
	made := filepath.Join(t.TempDir(), "made")
	option := "?ref=--upload-pack=touch%20" + made
	dir := write(t, map[string]string{
		"resource/kustomization.yaml":  "resources: [\"file:///none" + option + "\"]\n",
		"component/Kustomization":      "components: [\"file:///none//x" + option + "\"]\n",
		"version/kustomization.yml":    "resources: [\"file:///none?timeout=9&version=--upload-pack=touch%20" + made + "\"]\n",
		"generator/kustomization.yaml": "generators: [\"file:///none" + option + "\"]\n",
		"base/kustomization.yaml":      "resources: [../resource]\n",
		"linked/k.txt":                 "resources: [\"file:///none" + option + "\"]\n",
	})
	if err := os.Symlink("k.txt", filepath.Join(dir, "linked", "kustomization.yaml")); err != nil {
		t.Fatal(err)
	}
	repository := filepath.Join(dir, "resource")
	commit(t, repository)
	for _, at := range []string{"resource", "component", "version", "generator", "base", "linked", "file:///none" + option, "file://" + repository} {
		if !strings.Contains(at, ":") {
			at = filepath.Join(dir, at)
		}
		if out, err := YAML(at); err == nil || !strings.Contains(err.Error(), "as an option") {
			t.Errorf("%s: got %v; %s", at, err, out)
		}
	}
	if _, err := os.Lstat(made); err == nil {
		t.Error("git ran a program that a kustomization names")
	}
	plain := write(t, map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\nnameSuffix: -why?ref=main\nconfigMapGenerator: [{name: c, literals: [\"URL=http://svc/api?version=-1\"]}]\n",
		"a.yaml":             account,
	})
	if _, err := YAML(plain); err != nil {
		t.Errorf("other refs are refused: %v", err)
	}
}
