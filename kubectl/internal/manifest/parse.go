package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/kustomize"
)

// Rules say how to treat mistakes in files that users may tolerate.
type Rules struct {
	// Validation is the API's fieldValidation for objects that are read in order to be sent:
	// duplicate keys are refused, unless it says to ignore them or to warn.
	Validation string
	Warn       func(text string)
}

// Parse is Rules.Parse with the strictest rules.
func Parse(data []byte, source string) ([]Object, error) { return Rules{}.Parse(data, source) }

// Parse splits one source into its documents. Errors name the source and the
// line.
func (r Rules) Parse(data []byte, source string) ([]Object, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		objects, err := r.parseJSON(data, source)
		if err == nil {
			return objects, nil
		}
		// YAML's flow form also begins with a brace. A comma after the last element, which
		// kubectl takes in JSON, is allowed there.
		if fromYAML, yamlErr := r.parseYAML(data, source); yamlErr == nil {
			return fromYAML, nil
		}
		return nil, err
	}
	return r.parseYAML(data, source)
}

func (r Rules) parseJSON(data []byte, source string) ([]Object, error) {
	var all []Object
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		start := int(decoder.InputOffset())
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			at := len(data)
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				at = int(syntax.Offset)
			}
			return nil, parseError(source, lineAt(data, at), err)
		}
		for start < len(data) && strings.IndexByte(" \t\r\n", data[start]) >= 0 {
			start++
		}
		objects, err := r.parseObject(document, source, lineAt(data, start))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

func parseError(source string, line int, err error) error {
	return fmt.Errorf("error parsing %s: line %d: %w", source, line, err)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func (r Rules) parseYAML(data []byte, source string) ([]Object, error) {
	var all []Object
	line := 1
	for len(data) > 0 {
		document, rest := nextDocument(data)
		content, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			err = yamlError(err, source, line, bytes.Count(bytes.TrimRight(document, " \t\n"), []byte("\n"))+1, r.strictPrefix())
			var lenientErr error
			if content, lenientErr = yaml.YAMLToJSON(document); lenientErr != nil {
				return nil, adviseOn(document, line, err)
			}
			if !r.tolerates(err) { // keys that occur twice
				return nil, err
			}
		}
		if err := onlyDocument(document); err != nil {
			return nil, yamlError(err, source, line, bytes.Count(bytes.TrimRight(document, " \t\n"), []byte("\n"))+1, "")
		}
		if string(bytes.TrimSpace(content)) != "null" {
			objects, err := r.parseObject(content, source, line+leadingLines(document))
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
		line += bytes.Count(data[:len(data)-len(rest)], []byte("\n"))
		data = rest
	}
	return all, nil
}

// onlyDocument refuses what follows the end of a document, which the parser would pass over in
// silence: another object in braces, or one on the line of its separator.
func onlyDocument(document []byte) error {
	if start := bytes.TrimSpace(document); !mayEnd.Match(document) && !bytes.HasPrefix(start, []byte("{")) {
		return nil
	}
	decoder := goyaml.NewDecoder(bytes.NewReader(document))
	for count := 0; ; count++ {
		var content any
		err := decoder.Decode(&content)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case count > 0 && content != nil:
			return errors.New("YAML documents must be separated by a line with only ---")
		}
	}
}

var mayEnd = regexp.MustCompile(`(?m)^(---|\.\.\.)`)

// nextDocument cuts data after the next document separator.
func nextDocument(data []byte) (document, rest []byte) {
	for start := 0; start < len(data); {
		end := bytes.IndexByte(data[start:], '\n')
		next := len(data)
		if end >= 0 {
			next = start + end + 1
		}
		text := bytes.TrimRight(data[start:next], " \t\r\n")
		if bytes.HasPrefix(text, []byte("---")) && (len(text) == 3 || text[3] == ' ' || text[3] == '\t') {
			if comment := bytes.TrimSpace(text[3:]); len(comment) == 0 || comment[0] == '#' {
				return data[:start], data[next:]
			}
		}
		start = next
	}
	return data, nil
}

// leadingLines are the empty and comment lines before a document's content.
func leadingLines(document []byte) int {
	lines := 0
	for _, text := range bytes.SplitAfter(document, []byte("\n")) {
		trimmed := bytes.TrimSpace(text)
		if len(trimmed) > 0 && trimmed[0] != '#' {
			break
		}
		lines++
	}
	return lines
}

// yamlError counts the line from the beginning of the source instead of the
// document. It never exceeds the document's given number of lines: something
// missing is noticed only after the last line.
func yamlError(err error, source string, first, lines int, strictly string) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	text = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(text, "unmarshal errors:")), "yaml: ")
	match := yamlLine.FindStringSubmatchIndex(text)
	if match == nil {
		text, _, _ = strings.Cut(text, ": map[interface {}]") // a Go value is no help
		return fmt.Errorf("error parsing %s: the document from line %d on: %s", source, first, text)
	}
	line, atoiErr := strconv.Atoi(text[match[2]:match[3]])
	if atoiErr != nil {
		line = 1
	}
	message := text[:match[0]] + text[match[1]:]
	if strings.HasPrefix(message, "did not find expected") {
		line++ // the parser's own errors, unlike the scanner's, count lines from 0
	}
	if strings.Contains(message, "already set in map") {
		message = strictly + message
	}
	return parseError(source, first+min(line, lines)-1, errors.New(message))
}

// adviseOn adds to an error what beginners can't guess from the parser's words. The document begins at a line.
func adviseOn(document []byte, first int, err error) error {
	before, _, template := bytes.Cut(document, []byte("{{"))
	switch {
	case template:
		line := first + bytes.Count(before, []byte("\n"))
		return fmt.Errorf("%w (line %d has \"{{\", as a template does: apply what `helm template`, or the like, makes of it)", err, line)
	case tabIndent.Match(document) && strings.Contains(err.Error(), "cannot start any token"):
		return fmt.Errorf("%w (it is a tab: YAML is indented by spaces)", err)
	}
	return err
}

var tabIndent = regexp.MustCompile(`(?m)^ *\t`)

// tolerates tells whether the duplicate key in err is tolerated.
func (r Rules) tolerates(err error) bool {
	if r.Validation == metav1.FieldValidationWarn {
		r.Warn(err.Error())
	}
	return r.Validation == metav1.FieldValidationWarn || r.Validation == metav1.FieldValidationIgnore
}

// strictPrefix is the beginning of errors about duplicate keys, as servers begin those about
// fields.
func (r Rules) strictPrefix() string {
	if r.Validation == metav1.FieldValidationStrict {
		return "strict decoding error: "
	}
	return ""
}

// missingTypeError says which part of its type an object lacks, in kubectl's words.
func (r Rules) missingTypeError(kind, version string) error {
	validated := r.Validation == metav1.FieldValidationStrict || r.Validation == metav1.FieldValidationWarn
	switch {
	case validated && kind == "" && version == "":
		return errors.New("error validating data: [apiVersion not set, kind not set]")
	case validated && kind == "":
		return errors.New("error validating data: kind not set")
	case validated:
		return errors.New("error validating data: apiVersion not set")
	case kind == "":
		return errors.New("Object 'Kind' is missing") //nolint:staticcheck // kubectl's words
	}
	return errors.New("the object has no apiVersion")
}

// parseObject decodes one document, and takes it apart if it is a List.
func (r Rules) parseObject(document []byte, source string, line int) ([]Object, error) {
	content := map[string]any{}
	strict, err := kjson.UnmarshalStrict(document, &content)
	if err != nil {
		return nil, parseError(source, line, errors.New("the document is not an object"))
	}
	if len(strict) > 0 {
		err := parseError(source, line, errors.New(r.strictPrefix()+strict[0].Error()))
		if !r.tolerates(err) {
			return nil, err
		}
	}
	return r.split(content, source, line)
}

// inferType gives an item without a type, in a list of one kind (ConfigMapList, as a server
// answers it), the one that its list implies.
func inferType(item map[string]any, listKind, version string) {
	itemKind, _ := item["kind"].(string)
	itemVersion, _ := item["apiVersion"].(string)
	if kind := strings.TrimSuffix(listKind, "List"); kind != "" && itemKind == "" && itemVersion == "" {
		item["kind"], item["apiVersion"] = kind, version
	}
}

func (r Rules) split(content map[string]any, source string, line int) ([]Object, error) {
	kind, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	if kind == "" || version == "" {
		err := r.missingTypeError(kind, version)
		if kustomize.IsKustomization(source) {
			err = fmt.Errorf("%w (a kustomization is applied by the name of its directory: -k %s)", err, path.Dir(source))
		}
		return nil, parseError(source, line, err)
	}
	items, isList := content["items"].([]any)
	if !strings.HasSuffix(kind, "List") || !isList && content["items"] != nil {
		return []Object{{&unstructured.Unstructured{Object: content}, source, line}}, nil
	}
	var all []Object
	for i, item := range items {
		member, ok := item.(map[string]any)
		if !ok {
			return nil, parseError(source, line, fmt.Errorf("item %d of the list is not an object", i))
		}
		inferType(member, kind, version)
		objects, err := r.split(member, source, line)
		if err != nil {
			return nil, fmt.Errorf("item %d of the list: %w", i, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}
