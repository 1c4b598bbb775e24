package profile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is the text of a configuration file, so that errors can say where they
// are. The zero source stands for no file.
type source struct{ root *yaml.Node }

func newSource(data []byte) source {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		return source{}
	}
	return source{document.Content[0]}
}

// alone reports further documents in a file.
func alone(data []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		var document yaml.Node
		if err := documents.Decode(&document); err != nil {
			return nil // the end, or an error that the parser of the content reports
		}
		if n > 0 && (len(document.Content) == 0 || document.Content[0].Tag != "!!null") {
			return fmt.Errorf("line %d: the file has a second YAML document; only one is allowed", document.Line)
		}
	}
}

// fieldError says which field an error is about, below a profile.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// at ties an error to a field; the error's text may begin with a field below
// it.
func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return &fieldError{path, err}
}

var (
	unknownField = regexp.MustCompile(`^(?:unknown|duplicate) field "([^"]+)"`)
	leadingField = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*(?:\[\d+\])?(?:\.[A-Za-z][A-Za-z0-9]*(?:\[\d+\])?)*): `)
)

// locate prefixes an error, and each of several joined ones, with the line of
// the field that it is about, as far as that is known.
func (s source) locate(below string, err error) error {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		var located []error
		for _, one := range joined.Unwrap() {
			located = append(located, s.locate(below, one))
		}
		return errors.Join(located...)
	}
	if err == nil || s.root == nil {
		return err
	}
	text := err.Error()
	if field, ok := errors.AsType[*fieldError](err); ok {
		below, text = join(below, field.path), field.err.Error()
	}
	for _, pattern := range []*regexp.Regexp{unknownField, leadingField} {
		if found := pattern.FindStringSubmatch(text); found != nil {
			below = join(below, found[1])
			break
		}
	}
	if below == "" {
		return err
	}
	return fmt.Errorf("line %d: %w", s.line(below), err)
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// line is where the field of a path stands, or the nearest one above it that is
// there. An element of a list is named by its number or its name: profiles[0],
// pluginConfig[NodeAffinity].
func (s source) line(path string) int {
	node, line := s.root, s.root.Line
	for step := range strings.SplitSeq(path, ".") {
		field, element, _ := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		key, value := member(node, field)
		if key == nil {
			return line
		}
		node, line = value, key.Line
		if element == "" {
			continue
		}
		if value = item(value, element); value == nil {
			return line
		}
		node, line = value, value.Line
	}
	return line
}

func member(node *yaml.Node, field string) (key, value *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == field {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// item is the last element of that name in a list, or the one of that number.
func item(list *yaml.Node, element string) *yaml.Node {
	if list.Kind != yaml.SequenceNode {
		return nil
	}
	if i, err := strconv.Atoi(element); err == nil {
		if i < len(list.Content) {
			return list.Content[i]
		}
		return nil
	}
	for _, candidate := range slices.Backward(list.Content) {
		if _, name := member(candidate, "name"); name != nil && name.Value == element {
			return candidate
		}
	}
	return nil
}
