package schema

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/proto/rest"
)

// LoadV2 asks for the document of OpenAPI v2, which is one for all groups and versions.
func LoadV2(ctx context.Context, client *rest.Client) (*Document, error) {
	var read struct {
		Definitions map[string]*Type `json:"definitions"`
	}
	if err := client.Do(ctx, http.MethodGet, "/openapi/v2", nil, &read); err != nil {
		return nil, fmt.Errorf("couldn't find the schemas: %w", err)
	}
	return &Document{types: read.Definitions}, nil
}

// ExplainV2 is Explain of a document of OpenAPI v2, in the layout that kubectl had
// before there was v3.
func (d *Document) ExplainV2(w io.Writer, kind schema.GroupVersionKind, path []string, depth Depth) error {
	field, ok := d.Kind(kind)
	if !ok {
		return fmt.Errorf("couldn't find resource for %q", kind)
	}
	e := &explanationV2{explainer{document: d, out: &strings.Builder{}, depth: depth}}
	name := ""
	for _, name = range path {
		next := e.elementType(field).Properties[name]
		if next == nil {
			return fmt.Errorf("field %q does not exist", name)
		}
		field = next
	}
	fmt.Fprintf(e.out, "KIND:     %s\nVERSION:  %s\n\n", kind.Kind, kind.GroupVersion())
	e.model(name, field)
	_, err := io.WriteString(w, e.out.String())
	return errors.Join(err, e.recursionError(kind))
}

type explanationV2 struct{ explainer }

// The columns at which descriptions and fields begin, and how much further what is
// below a field does.
const (
	descriptionV2 = "     "
	fieldV2       = "   "
	belowV2       = "  "
)

// model writes what a field is, and the fields that it has.
func (e *explanationV2) model(name string, field *Type) {
	inner := e.elementType(field)
	switch {
	case len(inner.Properties) > 0 && name != "":
		fmt.Fprintf(e.out, "RESOURCE: %s <%s>\n\n", name, e.typeName(field))
	case len(inner.Properties) == 0 && inner.Type != "" && inner.Type != "object":
		fmt.Fprintf(e.out, "FIELD:    %s <%s>\n\n", name, e.typeName(field))
	}
	fmt.Fprintln(e.out, "DESCRIPTION:")
	texts := e.descriptions(field)
	if strings.Join(texts, "") == "" {
		fmt.Fprintln(e.out, descriptionV2+"<empty>")
	}
	for i, text := range texts {
		if text != "" && i > 0 {
			fmt.Fprintln(e.out)
		}
		if text != "" {
			e.wrap(text, descriptionV2)
		}
	}
	if len(inner.Properties) > 0 {
		fmt.Fprintln(e.out, "\nFIELDS:")
		e.fields(inner, fieldV2, 1, map[*Type]bool{inner: true})
	}
}

// descriptions are those on the way to the type whose fields a value has.
func (e *explanationV2) descriptions(t *Type) []string {
	texts := []string{t.Description}
	for len(texts) < mostNested {
		next, _ := e.document.Resolve(t)
		if next == t {
			next = t.within()
		}
		if next == nil {
			break
		}
		t = next
		texts = append(texts, t.Description)
	}
	return texts
}

// typeName is what a type is called where objects have no names.
func (e *explanationV2) typeName(t *Type) string {
	before := ""
	for range mostNested {
		whole, _ := e.document.Resolve(t)
		switch {
		case len(whole.Properties) > 0:
			return before + "Object"
		case whole.Type == "array" && whole.Items != nil:
			before, t = before+"[]", whole.Items
		case whole.values() != nil:
			before, t = before+"map[string]", whole.values()
		case whole.Type == "object":
			return before + "map[string]"
		default:
			return before + whole.Type
		}
	}
	return before
}

func (e *explanationV2) fields(t *Type, indent string, level int, above map[*Type]bool) {
	for _, name := range slices.Sorted(maps.Keys(t.Properties)) {
		if e.out.Len() > mostText {
			return
		}
		field := t.Properties[name]
		if field == nil {
			continue
		}
		if !e.depth.Recursive {
			mark := ""
			if slices.Contains(t.Required, name) {
				mark = " -required-"
			}
			fmt.Fprintf(e.out, "%s%s\t<%s>%s\n", indent, name, e.typeName(field), mark)
			if field.Description != "" {
				e.wrap(field.Description, indent+belowV2)
			}
			fmt.Fprintln(e.out)
			continue
		}
		fmt.Fprintf(e.out, "%s%s\t<%s>\n", indent, name, e.typeName(field))
		inner := e.elementType(field)
		if above[inner] || e.depth.Max > 0 && level >= e.depth.Max {
			continue
		}
		above[inner] = true
		e.fields(inner, indent+fieldV2, level+1, above)
		delete(above, inner)
	}
}

// bullet begins what stays on a line of its own.
var bullet = regexp.MustCompile(`^(\d+\.?|-|\*)\s`)

// wrap breaks a text into lines behind an indent, word by word. Lists, code, what ends
// with a colon and, behind the first line that is full, empty lines keep their breaks.
func (e *explanationV2) wrap(text, indent string) {
	line, written := "", false
	write := func(text string) { fmt.Fprintln(e.out, text); written = true }
	flush := func() {
		if line != "" {
			write(indent + line)
		}
		line = ""
	}
	for each := range strings.SplitSeq(text, "\n") {
		words, code := strings.Fields(each), strings.HasPrefix(each, "    ")
		apart := written
		if code || len(words) == 0 || strings.HasSuffix(line, ":") || bullet.MatchString(strings.TrimSpace(each)) {
			flush()
		}
		switch {
		case code:
			write(indent + each)
			continue
		case len(words) == 0 && apart:
			write("")
		}
		for _, word := range words {
			if len(indent)+len(line)+1+len(word) > lineWidth {
				flush()
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
	}
	flush()
}
