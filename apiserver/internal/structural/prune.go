package structural

import (
	"slices"
	"strconv"
	"strings"
)

// objectFields are in every object, whether its schema says so or not.
var objectFields = map[string]bool{"apiVersion": true, "kind": true, "metadata": true}

// Prune drops the fields of an object that its schema does not know. Where
// tell is set it returns the paths of what it dropped, sorted.
func (s *Schema) Prune(object map[string]any, tell bool) []string {
	p := &pruner{tell: tell}
	p.object(object, s, true)
	slices.Sort(p.dropped)
	return p.dropped
}

type pruner struct {
	tell    bool
	path    []string
	dropped []string
}

func (p *pruner) value(value any, s *Schema) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		p.object(v, s, s.embedded)
	case []any:
		for i, item := range v {
			if s.items == nil {
				continue
			}
			p.push("[" + strconv.Itoa(i) + "]")
			p.value(item, s.items)
			p.pop()
		}
	}
}

func (p *pruner) object(object map[string]any, s *Schema, whole bool) {
	for name, item := range object {
		if whole && objectFields[name] {
			continue
		}
		below := s.properties[name]
		if below == nil {
			below = s.values
		}
		if below == nil {
			if !s.preserve && !s.anyValues {
				delete(object, name)
				p.drop(name)
			}
			continue
		}
		p.push(name)
		p.value(item, below)
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
