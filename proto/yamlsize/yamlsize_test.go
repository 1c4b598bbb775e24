package yamlsize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

func tags(number int) string {
	var text strings.Builder
	for i := range number {
		fmt.Fprintf(&text, "%%TAG !t%d! tag:example.com,2000:\n", i)
	}
	return text.String()
}

func inUTF16(text string) string {
	out := []byte{0xfe, 0xff}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.BigEndian.AppendUint16(out, unit)
	}
	return string(out)
}

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"no aliases", "a: " + long, nil},
		{"signs that are none", "a: '" + strings.Repeat("&*", 1000) + "'\nb: 1", nil},
		{"few", "a: &a x\nb: [*a, *a]", nil},
		{"of something long", "a: &a " + long + "\nb: [*a, *a, *a, *a]", ErrAliases},
		{"of aliases", "a: &a [" + strings.Repeat("x, ", 9) + "]\nb: &b [" + strings.Repeat("*a, ", 30) + "]\nc: [" + strings.Repeat("*b, ", 30) + "]", ErrAliases},
		{"in a second document", "a: &a x\n---\nb: &b " + long + "\nc: [*b, *b, *b, *b]", nil},
		{"many directives", tags(100) + "---\na: 1", ErrDirectives},
		{"many after other line breaks", strings.ReplaceAll(tags(100), "\n", "\u2028") + "---\na: 1", ErrDirectives},
		{"many in UTF-16", inUTF16(tags(100) + "---\na: 1"), ErrDirectives},
		{"many after other line breaks in UTF-16", inUTF16(strings.ReplaceAll(tags(100), "\n", "\u2028") + "---\na: 1"), ErrDirectives},
		{"a long one for many tags", "%TAG !t! " + long + "\n---\na: [!t!x 1, !t!x 1]", ErrDirectives},
		{"some directives", tags(3) + "---\na: !t1!x 1", nil},
		{"some directives in UTF-16", inUTF16(tags(3) + "---\na: !t1!x 1"), nil},
		{"words that are no directives", "a: " + strings.Repeat("! %TAG ", 2000), nil},
		{"of themselves", "a: &a [*a]", nil}, // decoders refuse it
	} {
		if err := Check([]byte(c.text), 3000); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if Check([]byte("a: &a [*b]"), 3000) == nil {
		t.Error("an alias of nothing is no YAML")
	}
}
