package structural

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkDefaults makes sure that every default is what its own schema allows.
func (s *Schema) checkDefaults(path *field.Path, root bool, errs *field.ErrorList) {
	if s == nil {
		return
	}
	if s.hasFallback {
		s.checkDefault(path.Child("default"), root, errs)
	}
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		s.properties[name].checkDefaults(path.Child("properties").Key(name), false, errs)
	}
	s.items.checkDefaults(path.Child("items"), false, errs)
	s.values.checkDefaults(path.Child("additionalProperties"), false, errs)
}

// takeAnyForEither has defaults taken as upstream takes them: where a number or a
// text belongs, only what the combinations say is held against them.
func (s *Schema) takeAnyForEither() {
	if s == nil {
		return
	}
	s.either = false
	for _, property := range s.properties {
		property.takeAnyForEither()
	}
	s.items.takeAnyForEither()
	s.values.takeAnyForEither()
}

func (s *Schema) checkDefault(path *field.Path, root bool, errs *field.ErrorList) {
	value := copyValue(s.fallback) // as it stands: what it lacks is not filled in
	if object, ok := value.(map[string]any); ok {
		p := &pruner{tell: true}
		p.object(object, s, s.embedded || root, s.preserve)
		if len(p.dropped) > 0 {
			*errs = append(*errs, field.Invalid(path, s.fallback, "must not have unknown fields"))
			return
		}
		if root {
			*errs = append(*errs, validateObject(path, object)...)
		}
	}
	said := s.ValidateAlone(path, value, nil, false)
	*errs = append(*errs, slices.DeleteFunc(said, duplicate)...) // upstream does not ask for them
}

// trimRoot is what follows the default's own path in the path of an error.
func trimRoot(at string) string {
	if at == "<nil>" || at == "" {
		return ""
	}
	return "." + at
}
