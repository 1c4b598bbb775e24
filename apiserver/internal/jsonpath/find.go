package jsonpath

import (
	"cmp"
	"maps"
	"slices"
)

// maxFound bounds how many values are followed at once.
const maxFound = 10_000

// Find returns the values at the path, in their order in the document; members
// of objects are ordered by name.
func (p *Path) Find(value any) []any {
	found := []any{value}
	for _, one := range p.steps {
		var next []any
		for _, from := range found {
			if next = one.selectFrom(from, next); len(next) > maxFound {
				return nil
			}
		}
		found = next
	}
	return found
}

type memberNames []string

func (s memberNames) selectFrom(value any, found []any) []any {
	object, ok := value.(map[string]any)
	if !ok {
		return found
	}
	for _, name := range s {
		if member, ok := object[name]; ok {
			found = append(found, member)
		}
	}
	return found
}

type wildcard struct{}

func (wildcard) selectFrom(value any, found []any) []any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = append(found, v[name])
		}
	case []any:
		found = append(found, v...)
	}
	return found
}

// recursiveDescent goes to a value and everything below it.
type recursiveDescent struct{}

func (d recursiveDescent) selectFrom(value any, found []any) []any {
	if len(found) > maxFound {
		return found
	}
	found = append(found, value)
	for _, below := range (wildcard{}).selectFrom(value, nil) {
		found = d.selectFrom(below, found)
	}
	return found
}

type indexes []int

func (s indexes) selectFrom(value any, found []any) []any {
	list, ok := value.([]any)
	if !ok {
		return found
	}
	for _, i := range s {
		if i < 0 {
			i += len(list)
		}
		if i >= 0 && i < len(list) {
			found = append(found, list[i])
		}
	}
	return found
}

// slice is start, end and step, each of which may be omitted.
type slice [3]*int

func (s slice) selectFrom(value any, found []any) []any {
	list, ok := value.([]any)
	if !ok {
		return found
	}
	bound := func(at *int, otherwise int) int {
		if at == nil {
			return otherwise
		}
		i := *at
		if i < 0 {
			i += len(list)
		}
		return min(max(i, 0), len(list))
	}
	step := 1
	if s[2] != nil {
		step = *s[2]
	}
	for i := bound(s[0], 0); i < bound(s[1], len(list)); i += step {
		found = append(found, list[i])
	}
	return found
}

// operand is one side of a filter: a value, or where to find one.
type operand struct {
	path  *Path
	value any
}

func (o operand) resolve(item any) (any, bool) {
	if o.path == nil {
		return o.value, true
	}
	found := o.path.Find(item)
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

type filter struct {
	left, right operand
	operator    string
}

func (f filter) selectFrom(value any, found []any) []any {
	for _, item := range (wildcard{}).selectFrom(value, nil) {
		if f.matches(item) {
			found = append(found, item)
		}
	}
	return found
}

func (f filter) matches(item any) bool {
	left, ok := f.left.resolve(item)
	if !ok || f.operator == "" {
		return ok
	}
	right, ok := f.right.resolve(item)
	if !ok {
		return false
	}
	order, comparable := compare(left, right)
	switch f.operator {
	case "==":
		return comparable && order == 0
	case "!=":
		return !comparable || order != 0
	case "<":
		return comparable && order < 0
	case "<=":
		return comparable && order <= 0
	case ">":
		return comparable && order > 0
	}
	return comparable && order >= 0
}

// compare orders two scalars of one kind.
func compare(a, b any) (order int, comparable bool) {
	switch left := a.(type) {
	case string:
		right, ok := b.(string)
		return cmp.Compare(left, right), ok
	case bool:
		right, ok := b.(bool)
		if left == right {
			return 0, ok
		}
		return 1, ok
	}
	left, ok := number(a)
	if !ok {
		return 0, false
	}
	right, ok := number(b)
	return cmp.Compare(left, right), ok
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
