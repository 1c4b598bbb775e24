package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Block is a block of shell commands on a page of the documentation: fenced, of
// the language sh, bash, shell or console, or indented.
type Block struct {
	Line   int
	Under  string // the heading above it
	Text   string
	Run    bool   // test/docs runs it
	By     string // another test that runs it: "test/install TestPages"
	Reason string // why no test does
}

var (
	fence   = regexp.MustCompile("^```(\\w*)\\s*$")
	heading = regexp.MustCompile(`^#+ (.*)$`)
	runMark = regexp.MustCompile(`^<!-- run -->$`)
	byMark  = regexp.MustCompile(`^<!-- run by (test/\w+ Test\w+) -->$`)
	notMark = regexp.MustCompile(`^<!-- not run: (\S.*) -->$`)
	list    = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s`)
)

var shells = map[string]bool{"sh": true, "bash": true, "shell": true, "console": true}

// Blocks are the shell commands of a page's text, in order.
func Blocks(page string) []Block {
	var all []Block
	var mark Block     // what the comment said that stands before the next block
	var current *Block // the block that is being read
	under := ""
	inFence, inList, blank := false, false, true
	begin := func(line int) {
		mark.Line, mark.Under = line, under
		all = append(all, mark)
		mark, current = Block{}, &all[len(all)-1]
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
				current.Text += line + "\n"
			}
		case runMark.MatchString(line):
			mark, current, inList = Block{Run: true}, nil, false
		case byMark.MatchString(line):
			mark, current, inList = Block{By: byMark.FindStringSubmatch(line)[1]}, nil, false
		case notMark.MatchString(line):
			mark, current, inList = Block{Reason: notMark.FindStringSubmatch(line)[1]}, nil, false
		case strings.HasPrefix(line, "    ") && !inList && (blank || current != nil):
			if current == nil {
				begin(i + 1)
			}
			current.Text += strings.TrimPrefix(line, "    ") + "\n"
		case strings.TrimSpace(line) != "":
			if title := heading.FindStringSubmatch(line); title != nil {
				under = title[1]
			}
			inList = list.MatchString(line) || inList && strings.HasPrefix(line, " ")
			current = nil
		case current != nil: // a blank line within an indented block, or after it
			current.Text += "\n"
		}
		blank = strings.TrimSpace(line) == "" || strings.HasPrefix(line, "<!--")
	}
	for i := range all {
		all[i].Text = strings.TrimRight(all[i].Text, "\n") + "\n"
	}
	return all
}

// Page is what a test has to run of a page of the documentation.
type Page struct {
	name string
	left []Block
}

// OpenPage reads a page, by its path in the repository, for the blocks that are
// marked as run by this test. One that the test leaves out fails it.
func OpenPage(t testing.TB, name string) *Page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(), name))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd() // the test's own
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	p := &Page{name: name}
	for _, b := range Blocks(string(text)) {
		if b.By == "test/"+filepath.Base(dir)+" "+test {
			p.left = append(p.left, b)
		}
	}
	t.Cleanup(func() {
		for _, b := range p.left {
			if !t.Failed() {
				t.Errorf("%s:%d: is not run:\n%s", p.name, b.Line, b.Text)
			}
		}
	})
	return p
}

// Take returns the next block under a heading.
func (p *Page) Take(t testing.TB, under string) string {
	t.Helper()
	i := slices.IndexFunc(p.left, func(b Block) bool { return b.Under == under })
	if i < 0 {
		t.Fatalf("%s: no block is left to be run under %q", p.name, under)
	}
	text := p.left[i].Text
	p.left = slices.Delete(p.left, i, i+1)
	return text
}
