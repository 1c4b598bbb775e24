package bodylimit

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
	toJSON "sigs.k8s.io/yaml"
)

// Parts refuses a YAML body with more objects than JSON may have. An object
// takes two bytes, so only large bodies need to be read.
func Parts(body []byte) error {
	if len(body) < 2*maxParts {
		return nil
	}
	text, err := toJSON.YAMLToJSON(body)
	if err != nil {
		return nil // decoding it reports what is wrong
	}
	return JSON(text)
}

// YAML refuses a body that is longer than limit with its aliases expanded: an
// alias takes two bytes, whatever it stands for. YAML decoders bound how many
// values they make from aliases, but not how long these are.
func YAML(body []byte, limit int64) error {
	if bytes.IndexByte(body, '&') < 0 || bytes.IndexByte(body, '*') < 0 {
		return nil // an alias needs an anchor
	}
	var document yaml.Node
	if err := yaml.Unmarshal(body, &document); err != nil {
		return err
	}
	if (measurer{limit, map[*yaml.Node]int64{}}).length(&document) > limit {
		return errAliases
	}
	return nil
}

// YAMLToJSON is the body as JSON, unless YAML refuses it.
func YAMLToJSON(body []byte, limit int64) ([]byte, error) {
	if err := YAML(body, limit); err != nil {
		return nil, err
	}
	return toJSON.YAMLToJSON(body)
}

var errAliases = errors.New("error converting YAML to JSON: yaml: document contains excessive aliasing") // upstream's words for the worst

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
