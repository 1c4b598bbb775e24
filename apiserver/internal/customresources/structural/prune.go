package structural

import (
	"slices"
	"strconv"
	"strings"
)

// objectFields are in every object, whether its schema lists them or not.
var objectFields = map[string]bool{"apiVersion": true, "kind": true, "metadata": true}

// Prune drops the fields of an object that its schema does not know. If tell is
// set, it returns the paths of what it dropped, sorted.
func (s *Schema) Prune(object map[string]any, tell bool) []string {
	p := &pruner{tell: tell}
	p.object(object, s, true, s.preserve)
	slices.Sort(p.dropped)
	return p.dropped
}

// nothing knows no fields: it is for the content of a list that should not be one.
var nothing = &Schema{}

type pruner struct {
	tell    bool
	path    []string
	dropped []string
}

// value prunes below a field or in a list. What a list preserves is preserved
// in its items, however deeply lists are nested; properties are decided one by
// one.
func (p *pruner) value(value any, s *Schema, preserve bool) {
	if s == nil {
		return
	}
	preserve = preserve || s.preserve
	switch v := value.(type) {
	case map[string]any:
		p.object(v, s, s.embedded, preserve)
	case []any:
		items := s.items
		if items == nil && !preserve {
			items = nothing
		}
		for i, item := range v {
			p.push("[" + strconv.Itoa(i) + "]")
			p.value(item, items, preserve)
			p.pop()
		}
	}
}

func (p *pruner) object(object map[string]any, s *Schema, whole, preserve bool) {
	for name, item := range object {
		if whole && objectFields[name] {
			continue
		}
		below := s.properties[name]
		if below == nil {
			below = s.values
		}
		if below == nil {
			if !preserve && !s.anyValues {
				delete(object, name)
				p.drop(name)
			}
			continue
		}
		p.push(name)
		p.value(item, below, false)
		p.pop()
	}
}

func (p *pruner) push(step string) {
	if p.tell {
		p.path = append(p.path, step)
	}
}

func (p *pruner) pop() {
	if p.tell {
		p.path = p.path[:len(p.path)-1]
	}
}

func (p *pruner) drop(name string) {
	if p.tell {
		p.dropped = append(p.dropped, joinPath(append(slices.Clip(p.path), name)))
	}
}

func joinPath(steps []string) string {
	var out strings.Builder
	for i, step := range steps {
		if i > 0 && !strings.HasPrefix(step, "[") {
			out.WriteByte('.')
		}
		out.WriteString(step)
	}
	return out.String()
}
