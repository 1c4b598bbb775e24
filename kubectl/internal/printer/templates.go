package printer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// goTemplate prints what a Go text template makes of the object.
type goTemplate struct {
	text     string
	template *template.Template
}

func newGoTemplate(text string, allowMissingKeys bool) (Printer, error) {
	t, err := template.New("output").Funcs(template.FuncMap{"base64decode": decodeBase64, "exists": exists}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("error parsing template %s, %w", text, err)
	}
	if allowMissingKeys {
		t.Option("missingkey=default")
	} else {
		t.Option("missingkey=error")
	}
	return &goTemplate{text, t}, nil
}

func decodeBase64(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("base64 decode failed: %w", err)
	}
	return string(data), nil
}

// exists is kubectl's function of templates: whether the template function index
// would find something there that is not null. Fields go by their names, items by
// their numbers.
func exists(value any, path ...any) bool {
	for _, step := range path {
		switch in := value.(type) {
		case map[string]any:
			name, named := step.(string)
			if !named {
				return false
			}
			value = in[name]
		case []any:
			at := reflect.ValueOf(step)
			if !at.CanInt() || at.Int() < 0 || at.Int() >= int64(len(in)) {
				return false
			}
			value = in[at.Int()]
		default:
			return false
		}
	}
	return value != nil
}

func (p *goTemplate) Print(w io.Writer, obj runtime.Object) error {
	content, err := contentOf(obj)
	if err != nil {
		return err
	}
	if err := p.template.Execute(w, content); err != nil {
		// As kubectl does, it goes to the output: authors of templates look there.
		raw, _ := json.Marshal(obj)
		fmt.Fprintf(w, "Error executing template: %v. Printing more information for debugging the template:\n"+
			"\ttemplate was:\n\t\t%s\n\traw data was:\n\t\t%s\n\tobject given to template engine was:\n\t\t%+v\n\n", err, p.text, raw, content)
		return fmt.Errorf("error executing template %q: %w", p.text, err)
	}
	return nil
}

// jsonPath prints the values that a JSONPath finds in the object.
type jsonPath struct {
	text                     string
	asJSON, allowMissingKeys bool
}

func newJSONPath(text string, asJSON, allowMissingKeys bool) (Printer, error) {
	p := &jsonPath{text, asJSON, allowMissingKeys}
	_, err := p.parse()
	return p, err
}

// parse is done for each object anew: what a path has gone through a range with begins
// the next object within the range.
func (p *jsonPath) parse() (*jsonpath.JSONPath, error) {
	path := jsonpath.New("output").AllowMissingKeys(p.allowMissingKeys)
	if err := path.Parse(p.text); err != nil {
		return nil, fmt.Errorf("error parsing jsonpath %s, %w", p.text, err)
	}
	path.EnableJSONOutput(p.asJSON)
	return path, nil
}

func (p *jsonPath) Print(w io.Writer, obj runtime.Object) error {
	content, err := contentOf(obj)
	if err != nil {
		return err
	}
	path, err := p.parse()
	if err != nil {
		return err
	}
	if err := path.Execute(w, content); err != nil {
		return fmt.Errorf("error executing jsonpath %q: %w", p.text, err)
	}
	return nil
}

// contentOf is the object as decoded JSON.
func contentOf(obj runtime.Object) (map[string]any, error) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		return o.Object, nil
	case *unstructured.UnstructuredList:
		return o.UnstructuredContent(), nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	content := make(map[string]any)
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	return content, nil
}

var relaxed = regexp.MustCompile(`^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$`)

// RelaxedPath reads a JSONPath that may lack its braces and leading dot: x.y,
// .x.y, {x.y} and {.x.y} are the same.
func RelaxedPath(text string) (*jsonpath.JSONPath, error) {
	match := relaxed.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf(
			"unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}', got %q", text)
	}
	path := jsonpath.New(text).AllowMissingKeys(true)
	if err := path.Parse("{." + match[1] + match[2] + "}"); err != nil {
		return nil, fmt.Errorf("parsing the path %q: %w", text, err)
	}
	return path, nil
}
