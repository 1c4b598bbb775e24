package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Printer writes one object, which may be a List.
type Printer interface {
	Print(w io.Writer, obj runtime.Object) error
}

// Options choose a printer and what it shows.
type Options struct {
	Output   string // the value of -o: "", "wide", "json", "jsonpath=…", …
	Template string // --template, for the outputs that take one

	AllowMissingKeys  bool
	ShowManagedFields bool
	NoHeaders         bool

	files map[string]string // see ReadOnce
}

// ReadOnce lets all printers that are made of the options, and of copies, share what they
// read of a template's file: a pipe has it only once.
func (o *Options) ReadOnce() { o.files = map[string]string{} }

func (o Options) readTemplate(file string) (string, error) {
	if text, known := o.files[file]; known {
		return text, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("error reading --template %s, %w", file, err)
	}
	if o.files != nil {
		o.files[file] = string(text)
	}
	return string(text), nil
}

// TableOutput tells whether the output is a table made by the server: none of
// the printers here, but a Table.
func (o Options) TableOutput() bool { return !o.Chosen() || o.Output == "wide" }

// Chosen tells whether the user asked for a printer, by -o or, as in kubectl, by
// --template alone.
func (o Options) Chosen() bool { return o.Output != "" || o.Template != "" }

// Names are the outputs that there are, for help and errors.
var Names = []string{
	"custom-columns", "custom-columns-file", "go-template", "go-template-file", "json", "jsonpath", "jsonpath-as-json",
	"jsonpath-file", "kyaml", "name", "template", "templatefile", "wide", "yaml",
}

// plainNames are the outputs without a template, which may be written in capitals.
var plainNames = []string{"json", "yaml", "kyaml", "name"}

// New makes the printer that the options ask for. The output must not be a
// table's.
func New(o Options) (Printer, error) {
	if plain := strings.ToLower(o.Output); slices.Contains(plainNames, plain) {
		o.Output = plain
	}
	format, template, hasTemplate := strings.Cut(o.Output, "=")
	if !hasTemplate {
		template = o.Template
	}
	if o.Output == "" && template != "" {
		format = "go-template"
	}
	p, err := newPrinter(format, template, o)
	if err != nil {
		return nil, err
	}
	// A template that asks for them gets them.
	if o.ShowManagedFields || o.Output == "name" || !slices.Contains(plainNames, o.Output) {
		return p, nil
	}
	return withoutManagedFields{p}, nil
}

func newPrinter(format, template string, o Options) (Printer, error) {
	switch o.Output { // as it is: these take no template
	case "json":
		return JSON{}, nil
	case "yaml":
		return &YAML{}, nil
	case "kyaml":
		return KYAML{}, nil
	case "name":
		return &Name{Short: true}, nil
	}
	language, inFile := strings.CutSuffix(format, "-file")
	two := strings.Contains(o.Output, "=") && o.Template != "" // of one format, two templates
	switch {
	case two || !slices.Contains(Names, format) || format == "wide" || slices.Contains(plainNames, format):
		// "wide" is a table's, which are not made here.
		return nil, fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s",
			o.Output, strings.Join(Names, ","))
	case template == "" && language == "custom-columns":
		return nil, errors.New("custom-columns format specified but no custom columns given")
	case template == "":
		return nil, errors.New("template format specified but no template given")
	case inFile || format == "templatefile":
		var err error
		if template, err = o.readTemplate(template); err != nil {
			return nil, err
		}
	}
	switch {
	case language == "custom-columns" && inFile:
		return columnsFromFile(template, o)
	case language == "custom-columns":
		return columnsFromSpec(template, o)
	case strings.HasPrefix(language, "jsonpath"):
		return newJSONPath(template, language == "jsonpath-as-json", o.AllowMissingKeys)
	}
	return newGoTemplate(template, o.AllowMissingKeys)
}

// withoutManagedFields hides what nobody reads unless they asked for it.
type withoutManagedFields struct{ Printer }

func (p withoutManagedFields) Print(w io.Writer, obj runtime.Object) error {
	if event, ok := obj.(*Event); ok {
		obj = event.DeepCopyObject()
		strip(obj.(*Event).Object)
	} else if u, ok := obj.(runtime.Unstructured); ok {
		obj = u.DeepCopyObject()
		strip(obj)
	} else if accessor, ok := obj.(metav1.Object); ok && accessor.GetManagedFields() != nil {
		obj = obj.DeepCopyObject()
		obj.(metav1.Object).SetManagedFields(nil)
	}
	return p.Printer.Print(w, obj)
}

func strip(obj runtime.Object) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		if items, ok := o.Object["items"].([]any); ok {
			for _, item := range items {
				if m, ok := item.(map[string]any); ok {
					unstructured.RemoveNestedField(m, "metadata", "managedFields")
				}
			}
		}
	case *unstructured.UnstructuredList:
		for i := range o.Items {
			strip(&o.Items[i])
		}
	}
}

// JSON prints objects as JSON, indented as kubectl does.
type JSON struct{}

// Print writes the object and a line's end.
func (JSON) Print(w io.Writer, obj runtime.Object) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding JSON: %w", err)
	}
	if _, ok := obj.(*Event); ok {
		_, err := w.Write(append(data, '\n'))
		return err
	}
	var buf bytes.Buffer
	if err := json.Indent(&buf, bytes.TrimSpace(data), "", "    "); err != nil {
		return fmt.Errorf("encoding JSON: %w", err)
	}
	buf.WriteByte('\n')
	_, err = buf.WriteTo(w)
	return err
}

// YAML prints objects as YAML, and "---" between one and the next.
type YAML struct{ printed bool }

// Print writes the object.
func (y *YAML) Print(w io.Writer, obj runtime.Object) error {
	data, err := yaml.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding YAML: %w", err)
	}
	if y.printed {
		data = append([]byte("---\n"), data...)
	}
	y.printed = true
	_, err = w.Write(data)
	return err
}
