package editor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edit lets a shell script edit a text. $1 is the file, $TURN how often it was
// opened before.
func edit(t *testing.T, e *Editor, program, content string, accept func(string) error) (stderr string, err error) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "editor")
	text := "#!/bin/sh\nTURN=$(cat " + dir + "/turn 2>/dev/null || echo 0)\necho $((TURN + 1)) > " + dir + "/turn\n" + program + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBE_EDITOR", script)
	t.Setenv("TMPDIR", dir)
	var out, said bytes.Buffer
	e.In, e.Out, e.Err = strings.NewReader(""), &out, &said
	err = e.Edit(t.Context(), []byte(content), func(edited []byte) error { return accept(string(edited)) })
	left, globErr := filepath.Glob(filepath.Join(dir, "kctl-edit-*"))
	if globErr != nil {
		t.Fatal(globErr)
	}
	for _, file := range left {
		said.WriteString("left: " + filepath.Ext(file) + "\n")
	}
	return strings.ReplaceAll(said.String(), dir, "DIR") + out.String(), err
}

func TestEdit(t *testing.T) {
	invalid := &RetryError{Reasons: []Reason{{What: "it was not valid", Details: []string{"a: no", "b: not\nat all"}}, {What: "nor this"}}}
	for _, test := range []struct {
		name, format, program string
		accept                []error // the results, one after the other
		saved                 string  // what was accepted last
		wants                 []string
		fails                 string
	}{
		{name: "accepted", program: "sed -i s/b/c/ $1", accept: []error{nil}, saved: "a: c\n"},
		{name: "unchanged", program: "true", wants: []string{"Edit cancelled, no changes made."}},
		{name: "comments alone", program: "sed -i /^#/d $1", wants: []string{"Edit cancelled, no changes made."}},
		{name: "emptied", program: "echo '# x' > $1", wants: []string{"Edit cancelled, saved file was empty."}},
		{name: "help", program: "cat $1", wants: []string{"# help\na: b\n"}},
		{name: "JSON has no comments", format: "json", program: "cat $1; echo $1 >&2", wants: []string{"a: b\n", ".json\n"}},
		{name: "again", program: "cat $1; [ $TURN = 0 ] && sed -i s/b$/bad/ $1 || sed -i s/bad/good/ $1", accept: []error{invalid, nil}, saved: "a: good\n",
			wants: []string{"# help\n# it was not valid:\n# * a: no\n# * b: not\n# at all\n#\n# nor this\n#\na: bad\n"}},
		{name: "not mended", program: "sed -i s/b$/bad/ $1", accept: []error{invalid}, saved: "a: bad\n",
			wants: []string{"A copy of your changes has been stored to \"DIR/kctl-edit-", "left: .yaml"}, fails: "Edit cancelled, no valid changes were saved."},
		{name: "taken back", program: "[ $TURN = 0 ] && sed -i s/b$/bad/ $1 || sed -i s/bad/b/ $1", accept: []error{invalid}, saved: "a: bad\n",
			wants: []string{"Edit cancelled, no changes made."}},
		{name: "refused", program: "sed -i s/b/c/ $1", accept: []error{errors.New("no")}, saved: "a: c\n",
			wants: []string{"A copy of your changes has been stored to \"DIR/kctl-edit-", "left: .yaml"}, fails: "no"},
		{name: "kept", program: "sed -i s/b/c/ $1", accept: []error{&KeptError{"try %s again"}}, saved: "a: c\n",
			wants: []string{"try DIR/kctl-edit-", "left: .yaml"}, fails: ErrKept.Error()},
		{name: "broken", program: "exit 3", fails: "there was a problem with the editor"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &Editor{Help: "# help\n", Format: "yaml"}
			if test.format != "" {
				e.Format = test.format
			}
			turn, saved := 0, ""
			said, err := edit(t, e, test.program, "a: b\n", func(edited string) error {
				saved = edited
				turn++
				return test.accept[turn-1]
			})
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("it ended with %v, want %q", err, test.fails)
			}
			if saved != test.saved || turn != len(test.accept) {
				t.Errorf("%q was saved at turn %d, want %q at %d", saved, turn, test.saved, len(test.accept))
			}
			for _, text := range test.wants {
				if !strings.Contains(said, text) {
					t.Errorf("it said\n%s\nwant %q in it", said, text)
				}
			}
			if left := strings.Contains(said, "left:"); left != strings.Contains(strings.Join(test.wants, ""), "left:") {
				t.Errorf("a file was left: %v", left)
			}
		})
	}
}

func TestEditWindowsLines(t *testing.T) {
	e := &Editor{Help: "# help\n", Format: "yaml", CRLF: true}
	said, err := edit(t, e, `grep -c "$(printf '\r')" $1; sed -i s/b/c/ $1`, "a: b\nd: e\n", func(edited string) error {
		if edited != "a: c\nd: e\n" {
			t.Errorf("%q came out of the editor", edited)
		}
		return nil
	})
	if err != nil || !strings.HasPrefix(said, "3\n") {
		t.Errorf("the editor found %s, %v", said, err)
	}
}
