package remote

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseKeys(t *testing.T) {
	for text, want := range map[string]string{
		DetachKeys: "\x10\x11", "": "\x10\x11", "ctrl-@": "\x00", "ctrl-_": "\x1f", "ctrl-[,a,DEL": "\x1ba\x7f", "~,.": "~.",
	} {
		if got, err := ParseKeys(text); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{",", "ctrl-", "ctrl-P", "ctrl-ab", "ctrl-p,", "del", "ab"} {
		if got, err := ParseKeys(text); err == nil {
			t.Errorf("%q is accepted as %q", text, got)
		}
	}
}

// What is typed arrives, but for the keys that end it, however it is cut into pieces.
func TestDetach(t *testing.T) {
	for _, c := range []struct {
		keys, typed, arrives string
		detached             bool
	}{
		{"pq", "hello", "hello", false},
		{"pq", "hellopq", "hello", true},
		{"pq", "hellopqmore", "hello", true},
		{"pq", "apple", "apple", false},
		{"pq", "ppq", "p", true},
		{"pq", "p", "p", false}, // the end of the input is not a key
		{"aab", "aaab", "a", true},
		{"aab", "aaac", "aaac", false},
		{"abac", "ababac", "ab", true},
		{"q", "q", "", true},
	} {
		for name, pieces := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "single": iotest.OneByteReader, "with error": iotest.DataErrReader,
		} {
			d := &detachable{in: pieces(strings.NewReader(c.typed)), keys: []byte(c.keys)}
			got, err := io.ReadAll(d)
			if err != nil || string(got) != c.arrives || d.left.Load() != c.detached {
				t.Errorf("%s typed %s with the keys %s: %q, detached %t, %v; want %q, %t", c.typed, name, c.keys, got, d.left.Load(), err, c.arrives, c.detached)
			}
		}
	}
	broken := errors.New("broken")
	d := &detachable{in: io.MultiReader(strings.NewReader("ap"), iotest.ErrReader(broken)), keys: []byte("pq")}
	if got, err := io.ReadAll(d); string(got) != "ap" || !errors.Is(err, broken) {
		t.Errorf("a broken input: %q, %v", got, err)
	}
}
