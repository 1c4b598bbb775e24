package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/bodylimit"
)

// reformat turns JSON into YAML, or indents it. JSON that would become many times as
// long stays as it is, which is valid YAML, too: an object may have 10,000 levels,
// and a line for each, indented by two more than the one before, makes 200 MB out of
// 60 kB.
func reformat(f form, text []byte) ([]byte, error) {
	wanted := f.pretty || f.media == runtime.ContentTypeYAML
	switch {
	case !wanted || growsTooMuch(text):
		return append(bytes.Clone(text), '\n'), nil
	case f.media == runtime.ContentTypeYAML:
		out, err := yaml.JSONToYAML(text)
		if err != nil {
			return nil, fmt.Errorf("encode as YAML: %w", err)
		}
		return out, nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", indent); err != nil {
		return nil, fmt.Errorf("indent: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// indent is what each level is indented by. A text may grow to maxGrowth times
// its length (ordinary objects grow two- or threefold), or to a size that is
// negligible for a server.
const (
	indent          = "  "
	maxGrowth       = 16
	maxHarmlessSize = 1 << 20
)

// growsTooMuch reports whether JSON would grow too much if each of its values had a line.
func growsTooMuch(text []byte) bool {
	size, depth := len(text), 0
	for b := range bodylimit.Structure(text) {
		switch b {
		case '{', '[':
			depth++
			size += len(indent) * depth
		case ',':
			size += len(indent) * depth
		case '}', ']':
			depth--
			size += len(indent) * depth
		}
	}
	return size > max(maxGrowth*len(text), maxHarmlessSize)
}
