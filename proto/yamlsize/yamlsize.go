// Package yamlsize knows which YAML texts are too dear to decode: how long one is with its
// aliases expanded, and whether it begins with more directives than anybody needs.
//
// An alias takes two bytes, whatever it stands for, and decoders expand it: a megabyte
// becomes gigabytes of JSON. Decoders bound how many values they make from aliases, but not
// how long these are. Ask it before decoding what others wrote. It converts nothing itself.
package yamlsize

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

// ErrAliases is the error about a text that is too long, in upstream's words for the worst.
var ErrAliases = errors.New("error converting YAML to JSON: yaml: document contains excessive aliasing")

// ErrDirectives is the error about a text with too many tag directives.
var ErrDirectives = errors.New("error converting YAML to JSON: yaml: document contains excessive tag directives")

// maxDirectives is far more than texts have, usually none.
const maxDirectives = 1000

// Check refuses a text that is longer than limit with its aliases expanded, one with too many
// directives, and what is no YAML. Of several documents it looks at the first, as decoders do.
func Check(text []byte, limit int64) error {
	if directives(text) > maxDirectives {
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

// directives counts the lines of a text that declare tags. The decoder compares each one with
// all before it: a megabyte of them takes it seconds, three a minute.
func directives(text []byte) (count int) {
	directive := []byte("%TAG")
	for before := byte('\n'); ; {
		at := bytes.Index(text, directive)
		if at < 0 {
			return count
		}
		if at > 0 {
			before = text[at-1]
		}
		switch before {
		case '\n', '\r', 0x85, 0xa8, 0xa9, 0xbf: // last bytes of YAML's line breaks, and of a byte order mark
			count++
		}
		text, before = text[at+len(directive):], 'G'
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
