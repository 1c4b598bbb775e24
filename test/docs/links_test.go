package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kctl/test/harness"
)

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fences   = regexp.MustCompile("(?s)\n```.*?\n```")
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unslug   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the fragments of a page's headings in links, as GitHub makes
// them.
func anchors(page string) []string {
	var all []string
	for _, heading := range headings.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(unslug.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return all
}

// Links on all pages, those in the modules' folders too, lead to existing files
// and headings.
func TestLinksLeadSomewhere(t *testing.T) {
	root, count := harness.Root(), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "build"}, d.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page, _ := filepath.Rel(root, path)
		for _, link := range links.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			count++
			file, anchor, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			there, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s leads to %s: %v", page, link[1], err)
				continue
			}
			if anchor == "" || there.IsDir() {
				continue
			}
			data, err := os.ReadFile(target)
			if err != nil {
				return err
			}
			if !slices.Contains(anchors(string(data)), anchor) {
				t.Errorf("%s leads to %s, and there is no such heading", page, link[1])
			}
		}
		return nil
	})
	if err != nil || count == 0 {
		t.Fatalf("%d links, %v", count, err)
	}
}
