package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kctl/test/harness"
)

// block is a block of shell commands on a page.
type block struct {
	line   int
	text   string
	run    bool
	reason string // why it is not run
}

var (
	fence   = regexp.MustCompile("^```(\\w*)\\s*$")
	runMark = regexp.MustCompile(`^<!-- run -->$`)
	notMark = regexp.MustCompile(`^<!-- not run: (\S.*) -->$`)
	noPage  = regexp.MustCompile(`^<!-- not run on this page: (\S.*) -->$`)
	list    = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s`)
)

var shells = map[string]bool{"sh": true, "bash": true, "shell": true, "console": true}

// blocks are the shell commands of a page, in order.
func blocks(page string) []block {
	var all []block
	var mark block       // what the comment said that stands before the next block
	var current *block   // the block that is being read
	var everywhere block // what holds for the whole page
	inFence, inList, blank := false, false, true
	begin := func(line int) {
		next := block{line: line, run: mark.run, reason: mark.reason + everywhere.reason}
		mark = block{}
		all = append(all, next)
		current = &all[len(all)-1]
	}
	for i, line := range strings.Split(page, "\n") {
		fenced := fence.FindStringSubmatch(line)
		switch {
		case fenced != nil && inFence:
			inFence, current = false, nil
		case fenced != nil:
			inFence, current = true, nil
			if shells[fenced[1]] {
				begin(i + 1)
			}
		case inFence:
			if current != nil {
				current.text += line + "\n"
			}
		case runMark.MatchString(line):
			mark = block{run: true}
		case notMark.MatchString(line):
			mark = block{reason: notMark.FindStringSubmatch(line)[1]}
		case noPage.MatchString(line):
			everywhere.reason = noPage.FindStringSubmatch(line)[1]
		case strings.HasPrefix(line, "    ") && !inList && (blank || current != nil):
			if current == nil {
				begin(i + 1)
			}
			current.text += strings.TrimPrefix(line, "    ") + "\n"
		case strings.TrimSpace(line) != "":
			inList = list.MatchString(line) || inList && strings.HasPrefix(line, " ")
			current = nil
		}
		blank = strings.TrimSpace(line) == "" || strings.HasPrefix(line, "<!--")
	}
	return all
}

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

func read(t *testing.T, path string) []block {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return blocks(string(text))
}

// Every block of commands is run, or says why not.
func TestEveryBlockIsMarked(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range read(t, page) {
			if !b.run && b.reason == "" {
				t.Errorf("%s:%d: before these commands stands neither <!-- run --> nor <!-- not run: why -->:\n%s", filepath.Base(page), b.line, b.text)
			}
		}
	}
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
				if !b.run {
					continue
				}
				ran++
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.text)
				cmd.Env, cmd.Dir, cmd.WaitDelay = c.Env(), dir, 10*time.Second
				out, err := cmd.CombinedOutput()
				cancel()
				if err != nil {
					t.Fatalf("%s:%d: %v\n%s\n%s", filepath.Base(page), b.line, err, b.text, out)
				}
			}
		})
	}
	if ran == 0 {
		t.Error("no page has a block that is run")
	}
}

func TestBlocks(t *testing.T) {
	const page = "# Page\n\nText.\n\n<!-- run -->\n```sh\na\n\nb\n```\n\n```\nno shell\n```\n\n    indented\n      deeper\n\n- a list\n\n    its text\n\n" +
		"More.\n\n<!-- not run: it hurts -->\n\n    c\n\n```yaml\nd: e\n```\n"
	all := blocks(page)
	if len(all) != 3 || all[0].text != "a\n\nb\n" || !all[0].run || all[1].text != "indented\n  deeper\n" || all[1].run || all[1].reason != "" ||
		all[2].text != "c\n" || all[2].reason != "it hurts" {
		t.Errorf("%+v", all)
	}
	if all := blocks("<!-- not run on this page: it takes three machines -->\n\n```sh\na\n```\n\n<!-- run -->\n```sh\nb\n```\n"); !strings.Contains(all[0].reason, "three") || !all[1].run {
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
