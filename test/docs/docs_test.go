package docs_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

// pages are the pages that tell users what to type, the first steps first.
func pages(t *testing.T) []string {
	t.Helper()
	root := harness.Root()
	all, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	start := filepath.Join(root, "docs", "start.md")
	ordered := []string{filepath.Join(root, "README.md"), start, filepath.Join(root, "apiserver", "README.md")}
	for _, page := range all {
		if page != start {
			ordered = append(ordered, page)
		}
	}
	return ordered
}

func read(t *testing.T, path string) []harness.Block {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Blocks(string(text))
}

// Every block of commands has a marker. A test that a marker names exists.
func TestEveryBlockIsMarked(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range read(t, page) {
			switch {
			case !b.Run && b.By == "" && b.Reason == "":
				t.Errorf("%s:%d: these commands have no marker before them: <!-- run -->, <!-- run by test/FOLDER TEST --> or <!-- not run: why -->:\n%s",
					filepath.Base(page), b.Line, b.Text)
			case b.By != "":
				folder, test, _ := strings.Cut(b.By, " ")
				if !isThere(t, folder, test) {
					t.Errorf("%s:%d: there is no %s", filepath.Base(page), b.Line, b.By)
				}
			}
		}
	}
}

// isThere says whether a folder of the repository has a test of that name.
func isThere(t *testing.T, folder, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root(), folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte("\nfunc "+test+"(t *testing.T)"))
	})
}

// docs/relay.md names every hop that is stamped, and only code that exists.
func TestRelayIsTheCodes(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(harness.Root(), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	page := read("docs/relay.md")
	moments := regexp.MustCompile(`Hop = "([a-z]+\.[a-z-]+)"`).FindAllStringSubmatch(read("proto/relay/relay.go"), -1)
	for _, moment := range moments {
		if !strings.Contains(page, "`"+moment[1]+"`") {
			t.Errorf("docs/relay.md does not name %s", moment[1])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| \d+ \| (\w+) \|.*\| ([^|]+) \|$`).FindAllStringSubmatch(page, -1)
	if len(moments) == 0 || len(rows) == 0 {
		t.Fatalf("%d moments, %d legs", len(moments), len(rows))
	}
	for _, row := range rows {
		folder := strings.Replace(row[1], "kctl", "kubectl", 1)
		for _, path := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			below := "internal"
			if strings.HasPrefix(path[1], "framework/") {
				below = ""
			}
			if _, err := os.Stat(filepath.Join(harness.Root(), folder, below, path[1])); err != nil {
				t.Error(err)
			}
		}
	}
}

// The README of a module has a row for each of its rooms, and names none, and no file, that is gone.
func TestReadmesNameEveryRoom(t *testing.T) {
	for module, below := range map[string]string{"apiserver": "internal", "scheduler": "internal", "kubelet": "internal", "kubectl": "internal", "proto": ""} {
		folder := filepath.Join(harness.Root(), module, below)
		rooms, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(harness.Root(), module, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range rooms {
			named := regexp.MustCompile("`" + filepath.Join(below, room.Name()) + "(/\\*)?`")
			if room.IsDir() && !named.Match(page) {
				t.Errorf("%s/README.md has no row for %s", module, room.Name())
			}
		}
		for _, named := range regexp.MustCompile("`([a-z]+/[a-z/]+\\.go)`").FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(filepath.Join(folder, strings.TrimPrefix(named[1], "internal/"))); err != nil {
				t.Errorf("%s/README.md: %v", module, err)
			}
		}
		for _, named := range regexp.MustCompile("`internal/([a-z]+)(?:/\\*)?`").FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(filepath.Join(folder, named[1])); below != "" && err != nil {
				t.Errorf("%s/README.md: %v", module, err)
			}
		}
	}
}

// Tests that pages name as their witnesses are there.
func TestWitnesses(t *testing.T) {
	there := map[string]bool{}
	err := filepath.WalkDir(harness.Root(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "build"}, d.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func ((Test|Benchmark)\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil || len(there) == 0 {
		t.Fatal(err)
	}
	reports, err := filepath.Glob(filepath.Join(harness.Root(), "docs", "reports", "*.md"))
	if err != nil || len(reports) == 0 {
		t.Fatalf("no reports: %v", err)
	}
	for _, page := range append(pages(t), reports...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(Test|Benchmark)[A-Z]\w+`).FindAllString(string(text), -1) {
			if !there[name] {
				t.Errorf("%s names %s, which is not there", filepath.Base(page), name)
			}
		}
	}
}

func TestCommands(t *testing.T) {
	c := harness.Start(t, harness.Options{})
	ran := 0
	for _, page := range pages(t) {
		all := read(t, page)
		dir := t.TempDir()
		name, err := filepath.Rel(harness.Root(), page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			for _, b := range all {
				if !b.Run {
					continue
				}
				ran++
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.Text)
				cmd.Env, cmd.Dir, cmd.WaitDelay = c.Env(), dir, 10*time.Second
				out, err := cmd.CombinedOutput()
				cancel()
				if err != nil {
					t.Fatalf("%s:%d: %v\n%s\n%s", name, b.Line, err, b.Text, out)
				}
			}
		})
	}
	if ran == 0 {
		t.Error("no page has a block that is run")
	}
}

func TestBlocks(t *testing.T) {
	const page = "# Page\n\nText.\n\n<!-- run -->\n```sh\na\n\nb\n```\n\n```\nno shell\n```\n\n    indented\n      deeper\n\n    after a blank " +
		"line\n\n- a list\n\n    its text\n\n" +
		"More.\n\n## Part\n\n<!-- not run: it hurts -->\n\n    c\n\n<!-- run by test/install TestPages -->\n\n    d\n\n```yaml\nd: e\n```\n"
	want := []harness.Block{
		{Line: 6, Under: "Page", Text: "a\n\nb\n", Run: true},
		{Line: 16, Under: "Page", Text: "indented\n  deeper\n\nafter a blank line\n"},
		{Line: 31, Under: "Part", Text: "c\n", Reason: "it hurts"},
		{Line: 35, Under: "Part", Text: "d\n", By: "test/install TestPages"},
	}
	if all := harness.Blocks(page); !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
}

// configured are the flags that give an API server the configurations of
// docs/security.md.
func configured(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, found := range regexp.MustCompile("(?ms)^ *```yaml\n *# (--[a-z-]+)\n(.*?)^ *```").FindAllStringSubmatch(string(page), -1) {
		file := filepath.Join(t.TempDir(), "configuration.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(found[2], "BASE64_OF_32_RANDOM_BYTES", key)), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, found[1]+"="+file)
	}
	if len(flags) != 3 {
		t.Fatalf("docs/security.md has configurations for %q", flags)
	}
	return strings.Join(flags, " ")
}

// The examples in the help of what creates objects make objects, on an API server
// that is configured as docs/security.md says.
func TestExamples(t *testing.T) {
	c := harness.Start(t, harness.Options{
		Without: []string{"containerd", "scheduler", "kubelet", "registry"},
		Flags:   []string{"--apiserver-flags=" + configured(t)},
	})
	if health := c.Run("", "curl", "--silent", "--insecure", "https://127.0.0.1:"+strconv.Itoa(c.Port)+"/livez"); health.Stdout != "ok" {
		t.Errorf("a probe without credentials got %q", health.Stdout)
	}
	const privileged = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": true}}]}}`
	if r := c.Run(privileged, c.Bin("kctl"), "create", "--dry-run=server", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, "violates PodSecurity") {
		t.Errorf("a privileged pod: exit code %d: %s", r.Code, r.Stderr)
	}
	example := regexp.MustCompile(`(?m)^  kctl (run|create) .*$`)
	needsFiles := regexp.MustCompile(` -f | --from-file| --cert| token |-it? |--rm|--expose|--dry-run| \| | --from=`)
	verbs := []string{"run"}
	for _, line := range regexp.MustCompile(`(?m)^  ([a-z]+) {2,}`).FindAllStringSubmatch(c.Kctl("create", "--help"), -1) {
		verbs = append(verbs, "create "+line[1])
	}
	verbs = append(verbs, "create secret generic", "create secret docker-registry", "create service clusterip", "create service nodeport")
	ran := 0
	for _, verb := range verbs {
		_, help, _ := strings.Cut(c.Kctl(append(strings.Fields(verb), "--help")...), "Examples:")
		for _, line := range example.FindAllString(help, -1) {
			if needsFiles.MatchString(line) {
				continue
			}
			ran++
			line, _, _ := strings.Cut(strings.TrimSpace(line), " -- ")
			if r := c.Run("", "bash", "-c", line+" --dry-run=server -o name"); r.Code != 0 {
				t.Errorf("%s: exit code %d: %s", line, r.Code, r.Stderr)
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d examples were found", ran)
	}
	t.Logf("%d examples", ran)
}

// The commands of docs/architecture.md print what packages say of themselves.
func TestPackageComments(t *testing.T) {
	page := harness.OpenPage(t, "docs/architecture.md")
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", page.Take(t, "Architecture"))
	cmd.Dir = harness.Root()
	out, err := cmd.CombinedOutput()
	if first := "Package cache keeps, for each resource"; err != nil || strings.Count(string(out), first) != 2 {
		t.Errorf("not twice %q: %v\n%s", first, err, out)
	}
}
