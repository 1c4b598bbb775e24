package status

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	short, long := strings.Repeat("ü", maxText/2), "x"+strings.Repeat("ü", maxText)+"why"
	if Shorten(short) != short {
		t.Error("a text that is short enough was changed")
	}
	// Cut letters take a byte or two more.
	if got := Shorten(long); len(got) > maxText+4 || !utf8.ValidString(got) || !strings.HasPrefix(got, "xü") || !strings.HasSuffix(got, "üwhy") ||
		!strings.Contains(got, " … ") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}
