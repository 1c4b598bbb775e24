package structural

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is the position of a schema: that of the whole object, or in the
// metadata of an embedded object, whose fields are known without a schema.
type place struct{ root, metadata bool }

// checkDefaults checks that every default is valid by its own schema.
func (s *Schema) checkDefaults(path *field.Path, at place, errs *field.ErrorList) {
	if s == nil {
		return
	}
	if s.hasFallback {
		s.checkDefault(path.Child("default"), at, errs)
	}
	at.root = false
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		below := place{metadata: at.metadata && !s.embedded || s.embedded && name == "metadata"}
		s.properties[name].checkDefaults(path.Child("properties").Key(name), below, errs)
	}
	s.items.checkDefaults(path.Child("items"), at, errs)
	s.values.checkDefaults(path.Child("additionalProperties"), at, errs)
}

// dropUnknown removes unknown metadata fields from defaults: upstream accepts
// them in definitions, and drops them. Checks report other faults.
func (s *Schema) dropUnknown() {
	_, _ = s.coerceEmbedded(s.fallback, "", false)
	meta := s.properties["metadata"]
	if !s.embedded || meta == nil {
		return
	}
	whole := map[string]any{"metadata": meta.fallback}
	if _, isObject := meta.fallback.(map[string]any); isObject {
		_, _ = coerceMetadata(whole, "")
		meta.fallback = whole["metadata"]
	}
	for name, property := range meta.properties {
		if property.hasFallback {
			unknown, _ := coerceMetadata(map[string]any{"metadata": map[string]any{name: property.fallback}}, "")
			property.hasFallback = len(unknown) == 0
		}
	}
	meta.countDefaulted()
}

// takeAnyForEither accepts defaults as upstream does: for int-or-string values,
// only the combinations are checked.
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

func (s *Schema) checkDefault(path *field.Path, at place, errs *field.ErrorList) {
	value := copyValue(s.fallback) // unchanged: missing parts are not defaulted
	if object, ok := value.(map[string]any); ok && !at.metadata {
		p := &pruner{tell: true}
		p.object(object, s, s.embedded || at.root, s.preserve)
		if len(p.dropped) > 0 {
			*errs = append(*errs, field.Invalid(path, s.fallback, "must not have unknown fields"))
			return
		}
		if at.root {
			*errs = append(*errs, validateObject(path, object)...)
		}
	}
	said := s.ValidateAlone(path, value, nil, false)
	*errs = append(*errs, slices.DeleteFunc(said, duplicate)...) // upstream does not require them
}

// trimRoot is what follows the default's own path in the path of an error.
func trimRoot(at string) string {
	if at == "<nil>" || at == "" {
		return ""
	}
	return "." + at
}
