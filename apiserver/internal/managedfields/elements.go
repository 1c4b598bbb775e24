package managedfields

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"kctl/apiserver/internal/mergeschema"
)

// element is one of a list, named as in FieldsV1.
type element struct {
	element string
	node    int32
}

// listed are the elements of a list. Long ones are indexed.
type listed struct {
	list  []element
	index map[string]int32
}

// indexFrom is how long a list is that is better indexed than searched.
const indexFrom = 16

func (l *listed) find(name string) (int32, bool) {
	if l.index != nil {
		n, found := l.index[name]
		return n, found
	}
	for i := range l.list {
		if l.list[i].element == name {
			return l.list[i].node, true
		}
	}
	return none, false
}

// elements names the elements of a list. Lists with duplicates are left to the
// library.
func elements(s *mergeschema.Schema, d *document, at int32) (listed, error) {
	var l listed
	for i := d.nodes[at].first; i != none; i = d.after(i) {
		var name string
		var err error
		if s.Kind == mergeschema.ListSet {
			name, err = valueName(d, i)
		} else {
			name, err = keyName(s.Keys, d, i)
		}
		if err != nil {
			return l, err
		}
		if l.index == nil && len(l.list) == indexFrom {
			l.index = make(map[string]int32, 2*indexFrom)
			for _, e := range l.list {
				l.index[e.element] = e.node
			}
		}
		if _, twice := l.find(name); twice {
			return l, errUnusual
		}
		l.list = append(l.list, element{name, i})
		if l.index != nil {
			l.index[name] = i
		}
	}
	return l, nil
}

// valueName names an element of a set.
func valueName(d *document, at int32) (string, error) {
	raw := d.bytes(d.nodes[at].raw)
	if !isPlain(d.nodes[at].kind, raw) {
		return "", errUnusual
	}
	return "v:" + string(raw), nil
}

// isPlain reports whether a scalar is in its canonical form.
func isPlain(kind byte, raw []byte) bool {
	switch kind {
	case '"':
		return bytes.IndexByte(raw, '\\') < 0
	case '0':
		return !bytes.ContainsAny(raw, ".eE")
	}
	return false
}

// keyName names an element by its keys, in the order of their names.
func keyName(keys []mergeschema.Key, d *document, at int32) (string, error) {
	if d.nodes[at].kind != '{' {
		return "", errUnusual
	}
	if len(keys) > 1 && !slices.IsSortedFunc(keys, byName) {
		keys = slices.SortedFunc(slices.Values(keys), byName)
	}
	var name strings.Builder
	name.WriteString("k:{")
	for _, key := range keys {
		value, err := keyValue(key, d, at)
		if err != nil {
			return "", err
		}
		if value == nil {
			continue
		}
		if name.Len() > 3 {
			name.WriteByte(',')
		}
		name.WriteByte('"')
		name.WriteString(key.Name)
		name.WriteString(`":`)
		name.Write(value)
	}
	if name.Len() == 3 {
		return "", errUnusual
	}
	name.WriteByte('}')
	return name.String(), nil
}

func byName(a, b mergeschema.Key) int { return strings.Compare(a.Name, b.Name) }

func keyValue(key mergeschema.Key, d *document, at int32) ([]byte, error) {
	field := d.member(at, d.nodes[at].first, []byte(key.Name))
	if field == none {
		if key.Default == nil {
			return nil, nil
		}
		return json.Marshal(key.Default)
	}
	raw := d.bytes(d.nodes[field].raw)
	if !isPlain(d.nodes[field].kind, raw) {
		return nil, errUnusual
	}
	return raw, nil
}
