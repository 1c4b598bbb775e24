package structural

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is the position of a schema: that of the whole object, or in the kind or
// metadata of an object, which are valid or not without a schema, too.
type place struct {
	root bool
	// around makes a whole object of a value at this place; it is nil elsewhere.
	around func(value any) map[string]any
}

// checkDefaults checks that every default is valid by its own schema. Upstream does not look at
// those below additionalProperties.
func (s *Schema) checkDefaults(path *field.Path, at place, errs *field.ErrorList) {
	if s == nil {
		return
	}
	whole := s.embedded || at.root
	if s.embedded {
		at.around = nil
	}
	if s.hasFallback {
		s.checkDefault(path.Child("default"), at, errs)
	}
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		s.properties[name].checkDefaults(path.Child("properties").Key(name), at.property(name, whole), errs)
	}
	s.items.checkDefaults(path.Child("items"), at.item(), errs)
}

// property is the place of a property; whole: of a whole object.
func (at place) property(name string, whole bool) place {
	switch {
	case whole && (name == "metadata" || name == "apiVersion" || name == "kind"):
		return place{around: func(value any) map[string]any {
			object := map[string]any{"apiVersion": "validation/v1", "kind": "Validation"}
			object[name] = value
			return object
		}}
	case at.around != nil:
		return place{around: func(value any) map[string]any { return at.around(map[string]any{name: value}) }}
	}
	return place{}
}

// item is the place of a list's items.
func (at place) item() place {
	if at.around == nil {
		return place{}
	}
	return place{around: func(value any) map[string]any { return at.around([]any{value}) }}
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
	if at.around != nil {
		if reason := badObject(at.around(copyValue(value))); reason != "" {
			*errs = append(*errs, field.Invalid(path, s.fallback, "must result in valid metadata: "+reason))
			return
		}
	} else if bad := s.badEmbedded(path, value, at, errs); bad {
		return
	}
	said := s.ValidateAlone(path, value, nil, false)
	*errs = append(*errs, slices.DeleteFunc(said, duplicate)...) // upstream does not require them
}

// badEmbedded checks the fields of a default, and the objects in it. It reports whether one of
// these is wrong.
func (s *Schema) badEmbedded(path *field.Path, value any, at place, errs *field.ErrorList) bool {
	object, isObject := value.(map[string]any)
	p := &pruner{tell: true}
	if isObject {
		p.object(copyValue(value).(map[string]any), s, s.embedded || at.root, s.preserve)
	} else {
		p.value(copyValue(value), s, false)
	}
	if len(p.dropped) > 0 {
		*errs = append(*errs, field.Invalid(path, s.fallback, "must not have unknown fields"))
	}
	before := len(*errs)
	var bad *field.Error
	if _, err := s.coerceEmbedded(value, path.String(), false); errors.As(err, &bad) {
		*errs = append(*errs, bad)
		return true
	}
	if at.root && !s.embedded && isObject {
		*errs = append(*errs, validateObject(path, object)...)
	}
	*errs = append(*errs, s.ValidateEmbedded(path, value, false)...)
	return len(*errs) > before
}

// badObject says why the kind and metadata of an object are wrong, "" if they are not.
func badObject(object map[string]any) string {
	if _, err := coerceMetadata(object, ""); err != nil {
		return field.Invalid(field.NewPath("metadata"), object["metadata"], err.Error()).Error()
	}
	if bad := validateObject(nil, object).ToAggregate(); bad != nil {
		return bad.Error()
	}
	return ""
}

// trimRoot is what follows the default's own path in the path of an error.
func trimRoot(at string) string {
	if at == "<nil>" || at == "" {
		return ""
	}
	return "." + at
}
