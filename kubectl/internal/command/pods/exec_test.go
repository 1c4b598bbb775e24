package pods

import (
	"io"
	"strings"
	"testing"
)

// Of a log that is read twice, what was shown the first time is not shown again.
func TestLogGoesOn(t *testing.T) {
	var shown strings.Builder
	earlier := &lengthWriter{out: &shown}
	if _, err := io.WriteString(earlier, "one\ntw"); err != nil {
		t.Fatal(err)
	}
	rest := &skipWriter{out: &shown, skip: earlier.length}
	for _, part := range []string{"one\n", "two\n", "three\n"} {
		if n, err := io.WriteString(rest, part); n != len(part) || err != nil {
			t.Fatalf("%q: %d written, %v", part, n, err)
		}
	}
	if shown.String() != "one\ntwo\nthree\n" {
		t.Errorf("shown: %q", shown.String())
	}
}
