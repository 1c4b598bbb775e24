package structural

import (
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// listType is how the entries of a list are identified: "atomic" if they are
// not.
func (s *Schema) listType() string {
	if s.props.XListType == nil {
		return "atomic"
	}
	return *s.props.XListType
}

// identity is what identifies an entry of a list of type set or map, and how it
// is shown.
func (s *Schema) identity(item any) (key string, shown any) {
	shown = item
	if s.listType() == "map" {
		object, _ := item.(map[string]any)
		keys := make(map[string]any, len(s.props.XListMapKeys))
		for _, name := range s.props.XListMapKeys {
			value, ok := object[name]
			if !ok && s.items != nil && s.items.properties[name] != nil {
				value = s.items.properties[name].fallback
			}
			if value != nil {
				keys[name] = value
			}
		}
		shown = keys
	}
	text, err := json.Marshal(shown)
	if err != nil { // it came from JSON
		return "", shown
	}
	return string(text), shown
}

const needsObjects = "must be an object for an array of list-type map"

// duplicates refuses duplicate entries, and entries that can't have keys.
func (s *Schema) duplicates(path *field.Path, value []any) (errs field.ErrorList) {
	if s.listType() == "atomic" {
		return nil
	}
	if s.listType() == "map" {
		for i, item := range value {
			if _, isObject := item.(map[string]any); !isObject && item != nil {
				return field.ErrorList{field.Invalid(path.Index(i), item, needsObjects)}
			}
		}
	}
	seen := make(map[string]int, len(value))
	for i, item := range value {
		key, shown := s.identity(item)
		seen[key]++
		if seen[key] == 2 {
			errs = append(errs, field.Duplicate(path.Index(i), shown))
		}
	}
	return errs
}

// counterparts finds an entry's old value: by its keys in lists of type map;
// entries of other lists have none.
func (s *Schema) counterparts(old any) func(i int, item any) (any, bool) {
	before, _ := old.([]any)
	if s.listType() != "map" || len(before) == 0 {
		return func(int, any) (any, bool) { return nil, false }
	}
	byKey := make(map[string]any, len(before))
	for _, item := range before {
		key, _ := s.identity(item)
		byKey[key] = item
	}
	return func(_ int, item any) (any, bool) {
		key, _ := s.identity(item)
		was, ok := byKey[key]
		return was, ok
	}
}

// Same reports whether a value is unchanged; the entries of a map may have been
// reordered. As in upstream, an object with a field that the schema does not name
// never counts as unchanged; nor does a whole object, because of its metadata.
func (s *Schema) Same(value, old any) bool {
	if s == nil {
		return false
	}
	switch v := value.(type) {
	case []any:
		before, isList := old.([]any)
		if s.listType() != "map" || len(v) != len(before) {
			return isList && reflect.DeepEqual(v, before)
		}
		counterpart := s.counterparts(old)
		return !slices.ContainsFunc(v, func(item any) bool {
			was, ok := counterpart(0, item)
			return !ok || !s.items.Same(item, was)
		})
	case map[string]any:
		before, isObject := old.(map[string]any)
		if !isObject || len(v) != len(before) {
			return false
		}
		for name, item := range v {
			below := s.properties[name]
			if below == nil {
				below = s.values
			}
			if was, ok := before[name]; !ok || !below.Same(item, was) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(value, old)
}

// Counterpart finds the old value of a list's entry.
func (s *Schema) Counterpart(old any) func(i int, item any) (any, bool) { return s.counterparts(old) }
