package schema

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Depth is how deep the fields of fields are written.
type Depth struct {
	Recursive bool
	Max       int // levels; 0: all
}

// Explain writes what a kind, or a field of it, is for: kubectl's layout.
func (d *Document) Explain(w io.Writer, kind schema.GroupVersionKind, path []string, depth Depth) error {
	t, ok := d.Kind(kind)
	if !ok {
		return fmt.Errorf("couldn't find the schema of %s", kind)
	}
	e := &explanation{document: d, out: &strings.Builder{}, depth: depth}
	if kind.Group != "" {
		fmt.Fprintf(e.out, "GROUP:      %s\n", kind.Group)
	}
	fmt.Fprintf(e.out, "KIND:       %s\nVERSION:    %s\n\n", kind.Kind, kind.Version)
	err := e.walk(t, path)
	if _, writeErr := io.WriteString(w, e.out.String()); writeErr != nil {
		return writeErr
	}
	return err
}

type explanation struct {
	document *Document
	out      *strings.Builder
	depth    Depth
}

// walk follows the path to the field to explain.
func (e *explanation) walk(t *Type, path []string) error {
	field := t
	for i, name := range path {
		inner := e.inner(field)
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

// inner is the type whose fields a value has: its own, its items', its values'.
func (e *explanation) inner(t *Type) *Type {
	whole, _ := e.document.Resolve(t)
	switch {
	case whole.Items != nil:
		return e.inner(whole.Items)
	case whole.values() != nil:
		return e.inner(whole.values())
	}
	return whole
}

// typeName is what a field's type is called.
func (e *explanation) typeName(t *Type) string {
	whole, name := e.document.Resolve(t)
	switch {
	case name != "" && (whole.Type == "object" || whole.Type == ""):
		return name
	case whole.IntOrString:
		return "IntOrString"
	case whole.Type == "array" && whole.Items != nil:
		return "[]" + e.typeName(whole.Items)
	case whole.values() != nil:
		return "map[string]" + e.typeName(whole.values())
	case whole.Type == "object":
		return "Object"
	case whole.Type == "":
		return "Object"
	}
	return whole.Type
}

func (e *explanation) field(name string, t *Type) {
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
func (e *explanation) describe(t *Type) {
	fmt.Fprintln(e.out, "DESCRIPTION:")
	whole, _ := e.document.Resolve(t)
	for level := t; level != nil; {
		if level.Description != "" {
			e.out.WriteString(wrap(level.Description, "    "))
		}
		next, _ := e.document.Resolve(level)
		switch {
		case next != level:
			level = next
		case level.Items != nil:
			level = level.Items
		case level.values() != nil:
			level = level.values()
		default:
			level = nil
		}
	}
	if t.Description == "" && whole.Description == "" {
		fmt.Fprintln(e.out, "    <empty>")
	}
	fmt.Fprintln(e.out, "    ")
	inner := e.inner(t)
	if len(inner.Properties) > 0 {
		fmt.Fprintln(e.out, "FIELDS:")
		e.fields(inner, 1, map[*Type]bool{})
	}
	fmt.Fprintln(e.out)
}

// fields writes a line for each field, and below it either what it means or,
// recursively, the fields that it has itself. above guards against types that
// contain themselves.
func (e *explanation) fields(t *Type, level int, above map[*Type]bool) {
	indent := strings.Repeat("  ", level)
	above[t] = true
	defer delete(above, t)
	for _, name := range slices.Sorted(maps.Keys(t.Properties)) {
		field := t.Properties[name]
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
			e.out.WriteString(wrap(text, indent+"  ") + "\n")
			continue
		}
		if inner := e.inner(field); !above[inner] && (e.depth.Max == 0 || level < e.depth.Max) {
			e.fields(inner, level+1, above)
		}
	}
}

func (e *explanation) enum(t *Type) []string {
	whole, _ := e.document.Resolve(t)
	var values []string
	for _, each := range [][]any{t.Enum, whole.Enum} {
		if len(values) == 0 {
			for _, value := range each {
				word := fmt.Sprint(value)
				if word == "" {
					word = `""` // as kubectl writes it: nothing would not be seen
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
