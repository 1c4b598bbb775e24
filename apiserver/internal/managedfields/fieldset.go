package managedfields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// fieldSet is a set of paths in an object: a tree of path elements, some of which
// are in the set themselves. Elements are written as in FieldsV1 ("f:name",
// `k:{"name":"web"}`, `v:"text"`); children are in order. A nil fieldSet is empty.
type fieldSet struct {
	element  string
	here     bool
	children []*fieldSet
	arena    *arena // for children; nil where nodes are made one by one
}

func (f *fieldSet) empty() bool { return f == nil || !f.here && len(f.children) == 0 }

// child returns the child of an element, and creates it if necessary.
func (f *fieldSet) child(element string) *fieldSet {
	// Comparisons mostly add in order.
	if n := len(f.children); n == 0 || compareElements(f.children[n-1].element, element) < 0 {
		c := f.arena.node(element)
		f.children = append(f.children, c)
		return c
	}
	i, found := slices.BinarySearchFunc(f.children, element, func(c *fieldSet, e string) int { return compareElements(c.element, e) })
	if !found {
		f.children = slices.Insert(f.children, i, f.arena.node(element))
	}
	return f.children[i]
}

// mostExpected bounds the children for which room is made: most possible fields
// are not set.
const mostExpected = 12

// expect makes room for children.
func (f *fieldSet) expect(n int) {
	if f.children == nil && f.arena != nil {
		f.children = f.arena.children(min(n, mostExpected))
	}
}

// add adds c, which must not be shared, to f's children, unless it is empty.
func (f *fieldSet) add(c *fieldSet) {
	if !c.empty() {
		*f.child(c.element) = *c
	}
}

// compareElements is the library's order: fields, keys, values; fields by name,
// the others by content.
func compareElements(a, b string) int {
	if a[0] != b[0] {
		return strings.IndexByte("fkvi", a[0]) - strings.IndexByte("fkvi", b[0])
	}
	if a[0] == 'f' {
		return strings.Compare(a, b)
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	// Among numbers with the same beginning, the longer one is larger.
	start := i
	for start > 0 && isDigit(a[start-1]) {
		start--
	}
	if start > 0 && a[start-1] == ':' && strings.HasPrefix(a, "k") || start == 2 && a[0] != 'k' {
		if x, y := digits(a[start:]), digits(b[start:]); x != y && x > 0 && y > 0 {
			return x - y
		}
	}
	return strings.Compare(a, b)
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

// union adds all of g to f, which it changes and returns.
func (f *fieldSet) union(g *fieldSet) *fieldSet {
	switch {
	case g.empty():
		return f
	case f.empty():
		return g
	}
	f.here = f.here || g.here
	for _, c := range g.children {
		mine := f.child(c.element)
		if mine.empty() {
			*mine = *c
		} else {
			mine.union(c)
		}
	}
	return f
}

// without removes the paths of g from f, which it changes and returns.
func (f *fieldSet) without(g *fieldSet) *fieldSet {
	if f.empty() || g.empty() {
		return f
	}
	if g.here {
		f.here = false
	}
	i, kept := 0, f.children[:0]
	for _, c := range f.children {
		for i < len(g.children) && compareElements(g.children[i].element, c.element) < 0 {
			i++
		}
		if i < len(g.children) && g.children[i].element == c.element {
			c.without(g.children[i])
		}
		if !c.empty() {
			kept = append(kept, c)
		}
	}
	f.children = kept
	return f
}

// meets reports whether f and g have a path in common.
func (f *fieldSet) meets(g *fieldSet) bool {
	if f.empty() || g.empty() {
		return false
	}
	if f.here && g.here {
		return true
	}
	i := 0
	for _, c := range f.children {
		for i < len(g.children) && compareElements(g.children[i].element, c.element) < 0 {
			i++
		}
		if i < len(g.children) && g.children[i].element == c.element && c.meets(g.children[i]) {
			return true
		}
	}
	return false
}

// json is f as FieldsV1.
func (f *fieldSet) json() []byte { return f.appendJSON(make([]byte, 0, f.size())) }

// size is approximately the length of f as FieldsV1.
func (f *fieldSet) size() int {
	size := len(`{".":{},}`)
	for _, c := range f.children {
		size += len(`"":,`) + len(c.element) + c.size()
	}
	return size
}

func (f *fieldSet) appendJSON(to []byte) []byte {
	to = append(to, '{')
	if f.here && len(f.children) > 0 {
		to = append(to, `".":{}`...)
	}
	for i, c := range f.children {
		if i > 0 || f.here {
			to = append(to, ',')
		}
		to = append(to, '"')
		to = appendQuoted(to, c.element)
		to = append(to, `":`...)
		to = c.appendJSON(to)
	}
	return append(to, '}')
}

// appendQuoted writes the text between quotes in JSON.
func appendQuoted(to []byte, text string) []byte {
	from := 0 // of what is not written yet
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[from:i]...)
		from = i + 1
		if c >= ' ' {
			to = append(to, '\\', c)
			continue
		}
		to = fmt.Appendf(to, `\u%04x`, c) // users choose the names of a custom resource's unknown fields
	}
	return append(to, text[from:]...)
}

// errUnusual: a case that is left to the library.
var errUnusual = errors.New("out of the ordinary")

// parseFields reads FieldsV1.
func parseFields(d *document, text []byte) (*fieldSet, error) {
	if err := d.parse(text); err != nil {
		return nil, err
	}
	root := &fieldSet{}
	// Leaves are owned; the root never is.
	if err := root.read(d, 0); err != nil {
		return nil, err
	}
	root.here = false
	return root, nil
}

func (f *fieldSet) read(d *document, at int32) error {
	if d.nodes[at].kind != '{' {
		return errUnusual
	}
	if d.nodes[at].first == none {
		f.here = true
		return nil
	}
	for i := d.nodes[at].first; i != none; i = d.after(i) {
		name, err := unescaped(d.bytes(d.nodes[i].name), d.nodes[i].escapeName)
		switch {
		case err != nil:
			return err
		case name == ".":
			f.here = true
		case !usual(name):
			return errUnusual
		default:
			if err := f.child(name).read(d, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// usual reports whether a path element is in the form that this package writes;
// there are other forms with the same meaning.
func usual(name string) bool {
	if len(name) < 3 || name[1] != ':' {
		return false
	}
	switch name[0] {
	case 'f':
		return true
	case 'k', 'v':
		return strings.IndexByte(name, '\\') < 0 && strings.IndexByte(name, ' ') < 0
	}
	return false
}

func unescaped(text []byte, escaped bool) (string, error) {
	if !escaped {
		return string(text), nil
	}
	// Mostly it is quotes in keys.
	if simple := bytes.ReplaceAll(text, []byte(`\"`), []byte(`"`)); bytes.IndexByte(simple, '\\') < 0 {
		return string(simple), nil
	}
	var out string
	quoted := append(append([]byte{'"'}, text...), '"')
	if err := json.Unmarshal(quoted, &out); err != nil {
		return "", errMalformed
	}
	return out, nil
}
