package docs_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

// pages are the pages that tell users what to type: where they begin first.
func pages(t *testing.T) []string {
	t.Helper()
	root := harness.Root()
	all, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	start := filepath.Join(root, "docs", "start.md")
	ordered := []string{filepath.Join(root, "README.md"), start}
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

// Every block of commands is run, or says why not; a test that is said to run it
// is there.
func TestEveryBlockIsMarked(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range read(t, page) {
			switch {
			case !b.Run && b.By == "" && b.Reason == "":
				t.Errorf("%s:%d: before these commands stands none of <!-- run -->, <!-- run by test/FOLDER TEST --> and <!-- not run: why -->:\n%s", filepath.Base(page), b.Line, b.Text)
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

// The index leads to pages that are there.
func TestIndexLeadsSomewhere(t *testing.T) {
	docs := filepath.Join(harness.Root(), "docs")
	index, err := os.ReadFile(filepath.Join(docs, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(string(index), -1) {
		if _, err := os.Stat(filepath.Join(docs, link[1])); err != nil {
			t.Errorf("docs/README.md leads to %s: %v", link[1], err)
		}
	}
}

// The commands work, in the order in which they stand.
func TestCommands(t *testing.T) {
	c := harness.Start(t, harness.Options{})
	ran := 0
	for _, page := range pages(t) {
		all := read(t, page)
		dir := t.TempDir()
		t.Run(filepath.Base(page), func(t *testing.T) {
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
					t.Fatalf("%s:%d: %v\n%s\n%s", filepath.Base(page), b.Line, err, b.Text, out)
				}
			}
		})
	}
	if ran == 0 {
		t.Error("no page has a block that is run")
	}
}

func TestBlocks(t *testing.T) {
	const page = "# Page\n\nText.\n\n<!-- run -->\n```sh\na\n\nb\n```\n\n```\nno shell\n```\n\n    indented\n      deeper\n\n    after a blank line\n\n- a list\n\n    its text\n\n" +
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

// The examples in the help of what creates objects make objects.
func TestExamples(t *testing.T) {
	c := harness.Start(t, harness.Options{Without: []string{"containerd", "scheduler", "kubelet", "registry"}})
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
