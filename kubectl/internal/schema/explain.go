package schema

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Depth is how many levels of fields are written.
type Depth struct {
	Recursive bool
	Max       int // levels; 0: all
}

// Explain writes what a kind, or one of its fields, is for, in kubectl's layout.
func (d *Document) Explain(w io.Writer, kind schema.GroupVersionKind, path []string, depth Depth) error {
	t, ok := d.Kind(kind)
	if !ok {
		return fmt.Errorf("couldn't find the schema of %s", kind)
	}
	e := &explainer{document: d, out: &strings.Builder{}, depth: depth}
	if kind.Group != "" {
		fmt.Fprintf(e.out, "GROUP:      %s\n", kind.Group)
	}
	fmt.Fprintf(e.out, "KIND:       %s\nVERSION:    %s\n\n", kind.Kind, kind.Version)
	err := errors.Join(e.walk(t, path), e.recursionError(kind))
	if _, writeErr := io.WriteString(w, e.out.String()); writeErr != nil {
		return writeErr
	}
	return err
}

type explainer struct {
	document *Document
	out      *strings.Builder
	depth    Depth
}

// What is believed of a document, which an aggregated server or none of ours may have
// written: types can refer to themselves, and each to the next many times.
const (
	mostNested = 100     // lists and maps in each other
	mostText   = 4 << 20 // bytes; Pod has 52,000
)

// recursionError is an error where the text was cut.
func (e *explainer) recursionError(kind schema.GroupVersionKind) error {
	if e.out.Len() <= mostText {
		return nil
	}
	return fmt.Errorf("the fields of %s were cut: they take more than %d bytes", kind, mostText)
}

// walk follows the path to the field to explain.
func (e *explainer) walk(t *Type, path []string) error {
	field := t
	for i, name := range path {
		inner := e.elementType(field)
		next := inner.Properties[name]
		if next == nil {
			return fmt.Errorf("field %q does not exist", name)
		}
		field = next
		if i == len(path)-1 {
			e.field(name, next)
		}
	}
	e.describe(field)
	return nil
}

// elementType is the type whose fields a value has: its own, its items', its values'.
func (e *explainer) elementType(t *Type) *Type {
	for range mostNested {
		whole, _ := e.document.Resolve(t)
		next := whole.within()
		if next == nil {
			return whole
		}
		t = next
	}
	return &Type{}
}

// within is the type of what a list or a map has in it; nil for others.
func (t *Type) within() *Type {
	if t.Items != nil {
		return t.Items
	}
	return t.values()
}

// typeName is what a field's type is called.
func (e *explainer) typeName(t *Type) string {
	before := ""
	for range mostNested {
		whole, name := e.document.Resolve(t)
		switch {
		case name != "" && (whole.Type == "object" || whole.Type == ""):
			return before + name
		case whole.IntOrString:
			return before + "IntOrString"
		case whole.Type == "array" && whole.Items != nil:
			before, t = before+"[]", whole.Items
		case whole.values() != nil:
			before, t = before+"map[string]", whole.values()
		case whole.Type == "object", whole.Type == "":
			return before + "Object"
		default:
			return before + whole.Type
		}
	}
	return before
}

func (e *explainer) field(name string, t *Type) {
	fmt.Fprintf(e.out, "FIELD: %s <%s>\n", name, e.typeName(t))
	if enum := e.enum(t); len(enum) > 0 {
		fmt.Fprintln(e.out, "ENUM:")
		for _, value := range enum {
			fmt.Fprintf(e.out, "    %s\n", value)
		}
	} else {
		fmt.Fprintln(e.out)
	}
	fmt.Fprintln(e.out)
}

// describe writes a value's description, and the fields that it has.
func (e *explainer) describe(t *Type) {
	fmt.Fprintln(e.out, "DESCRIPTION:")
	described := false
	for level, steps := t, 0; level != nil && steps < mostNested; steps++ {
		if level.Description != "" {
			described = true
			e.out.WriteString(wrap(level.Description, "    "))
		}
		next, _ := e.document.Resolve(level)
		if next == level {
			next = level.within()
		}
		level = next
	}
	if described {
		fmt.Fprintln(e.out, "    ")
	} else {
		fmt.Fprintln(e.out, "    <empty>")
	}
	if whole, _ := e.document.Resolve(t); whole.Docs != nil {
		e.docs(whole.Docs, "", "    ")
	}
	inner := e.elementType(t)
	if len(inner.Properties) > 0 {
		fmt.Fprintln(e.out, "FIELDS:")
		e.fields(inner, 1, map[*Type]bool{})
	}
	fmt.Fprintln(e.out)
}

// docs says where more is written.
func (e *explainer) docs(d *docs, indent, inside string) {
	fmt.Fprintf(e.out, "\n%sEXTERNAL DOCS:\n", indent)
	if d.Description != "" {
		e.out.WriteString(wrap(d.Description, inside))
	}
	if d.URL != "" {
		fmt.Fprintf(e.out, "%sURL: %s\n", inside, d.URL)
	}
}

// fields writes a line for each field, and below it either its meaning or,
// recursively, its own fields. above guards against types that contain
// themselves.
func (e *explainer) fields(t *Type, level int, above map[*Type]bool) {
	indent := strings.Repeat("  ", level)
	above[t] = true
	defer delete(above, t)
	for _, name := range slices.Sorted(maps.Keys(t.Properties)) {
		if e.out.Len() > mostText {
			return
		}
		field := t.Properties[name]
		if field == nil {
			continue
		}
		mark := ""
		if slices.Contains(t.Required, name) {
			mark = " -required-"
		}
		fmt.Fprintf(e.out, "%s%s\t<%s>%s\n", indent, name, e.typeName(field), mark)
		if enum := e.enum(field); len(enum) > 0 {
			fmt.Fprintf(e.out, "%senum: %s\n", indent, shortened(enum))
		}
		if !e.depth.Recursive {
			text := field.Description
			if text == "" {
				text = "<no description>"
			}
			e.out.WriteString(wrap(text, indent+"  "))
			if field.Docs != nil {
				e.docs(field.Docs, indent+"  ", indent+"    ")
			}
			fmt.Fprintln(e.out)
			continue
		}
		if inner := e.elementType(field); !above[inner] && (e.depth.Max == 0 || level < e.depth.Max) {
			e.fields(inner, level+1, above)
		}
	}
}

func (e *explainer) enum(t *Type) []string {
	whole, _ := e.document.Resolve(t)
	var values []string
	for _, each := range [][]any{t.Enum, whole.Enum} {
		if len(values) == 0 {
			for _, value := range each {
				word := fmt.Sprint(value)
				if word == "" {
					word = `""` // as kubectl writes it, because an empty string would be invisible
				}
				values = append(values, word)
			}
		}
	}
	return values
}

// maxEnum is how many values are named beside a field.
const maxEnum = 4

func shortened(enum []string) string {
	if len(enum) > maxEnum {
		return strings.Join(enum[:maxEnum], ", ") + ", ...."
	}
	return strings.Join(enum, ", ")
}

const lineWidth = 80

// wrap breaks a text into lines behind an indent. Lines that follow each other
// are one paragraph; lines that are indented stand alone.
func wrap(text, indent string) string {
	var out strings.Builder
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			breakLines(&out, paragraph, indent)
			paragraph = ""
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t")
		switch {
		case line == "":
			flush()
			out.WriteString(indent + "\n")
		case line[0] == ' ' || line[0] == '\t':
			flush()
			breakLines(&out, line, indent)
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	flush()
	return out.String()
}

func breakLines(out *strings.Builder, text, indent string) {
	room := lineWidth - len(indent)
	for len(text) > room {
		at := strings.LastIndexByte(text[:room+1], ' ')
		if at <= 0 {
			if at = strings.IndexByte(text, ' '); at < 0 {
				break
			}
		}
		out.WriteString(indent + strings.TrimRight(text[:at], " ") + "\n")
		text = strings.TrimLeft(text[at:], " ")
	}
	out.WriteString(indent + text + "\n")
}
