// Package yamlsize knows which YAML texts are too dear to decode: how long one is with its
// aliases expanded, and whether its directives make its tags longer than anybody needs.
//
// An alias takes two bytes, whatever it stands for, and decoders expand it: a megabyte
// becomes gigabytes of JSON. Decoders bound how many values they make from aliases, but not
// how long these are. Ask it before decoding what others wrote. It converts nothing itself.
package yamlsize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
)

// ErrAliases is the error about a text that is too long, in upstream's words for the worst.
var ErrAliases = errors.New("error converting YAML to JSON: yaml: document contains excessive aliasing")

// ErrDirectives is the error about a text whose tags are too long, or too slow to look up.
var ErrDirectives = errors.New("error converting YAML to JSON: yaml: document contains excessive tag directives")

// Check refuses a text that is longer than limit with its aliases expanded, one whose tags may
// be, and what is no YAML. Of several documents it looks at the first, as decoders do.
func Check(text []byte, limit int64) error {
	if inUTF8 := decoded(text); int64(directives(inUTF8))*int64(bytes.Count(inUTF8, []byte("!"))) > limit {
		return ErrDirectives
	}
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil // an alias needs an anchor
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	if (measurer{limit, map[*yaml.Node]int64{}}).length(&document) > limit {
		return ErrAliases
	}
	return nil
}

// decoded is a text in UTF-8. Decoders take UTF-16 for what begins with its byte order mark.
func decoded(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return text
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// breaks are YAML's line breaks.
const breaks = "\r\n\u0085\u2028\u2029"

// directives is how long the lines of a text that declare tags are, in all. The decoder makes
// each tag, which takes a few bytes with a "!", as long as what one of these lines says, finds
// it by comparing it with each of them, and compares each line with all before it: 200 kB
// become gigabytes, and three megabytes take it a minute.
func directives(text []byte) (length int) {
	directive := []byte("%TAG")
	for before := byte('\n'); ; {
		at := bytes.Index(text, directive)
		if at < 0 {
			return length
		}
		if at > 0 {
			before = text[at-1]
		}
		text = text[at:]
		end := len(directive)
		switch before {
		case '\n', '\r', 0x85, 0xa8, 0xa9, 0xbf: // last bytes of line breaks, and of a byte order mark
			if end = bytes.IndexAny(text, breaks); end < 0 {
				end = len(text)
			}
			length += end
		}
		text, before = text[end:], text[end-1]
	}
}

// measurer measures values as they are without aliases.
type measurer struct {
	limit   int64
	anchors map[*yaml.Node]int64 // already measured
}

// length stops counting soon after the limit. A value that contains itself has
// no length; decoding it reports that.
func (w measurer) length(n *yaml.Node) int64 {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
		if known, ok := w.anchors[n]; ok {
			return known
		}
	}
	if n.Anchor != "" {
		w.anchors[n] = 0
	}
	sum := int64(1 + len(n.Value))
	for _, part := range n.Content {
		if sum += w.length(part); sum > w.limit {
			break
		}
	}
	if n.Anchor != "" {
		w.anchors[n] = sum
	}
	return sum
}
