package structural

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// closest returns the errors by which a value misses that schema of schemas which has the most
// in common with it, the first of several, and how much that is. If some schema matches, there
// are no errors, and it is the first one that counts; valid is how many match.
func closest(schemas []*Schema, path *field.Path, value any) (errs field.ErrorList, common, valid int) {
	for _, one := range schemas {
		failed := one.validate(path, value, nil, false)
		if len(failed) == 0 {
			if valid++; valid == 1 {
				errs, common = nil, one.matches(value)
			}
			continue
		}
		if valid > 0 {
			continue
		}
		if n := one.matches(value); errs == nil || n > common {
			errs, common = failed, n
		}
	}
	return errs, common, valid
}

// matches says how much a value has in common with the schema, in upstream's measure: how many of
// upstream's validators look at the value and its parts, and at how many of those the type is right.
// It decides only about which errors are worth showing, never about whether there are some.
func (s *Schema) matches(value any) int {
	if s == nil {
		return 0
	}
	fits := 0
	if len(s.kind(nil, value)) == 0 {
		fits = 1
	}
	if value == nil {
		return fits
	}
	n := 4 + s.matchesAlternatives(value) // itself, its enum, and the validator of alternatives, which counts twice
	if s.props.Type != "" || s.props.Format != "" || s.either {
		n += 1 + fits
	}
	switch v := value.(type) {
	case string:
		n++
		if strfmt.Default.ContainsName(s.props.Format) {
			n++
		}
	case int64, float64:
		n += 2
	case []any:
		n += 2
		for _, item := range v {
			n += s.items.matches(item)
		}
	case map[string]any:
		n++
		for key, below := range v {
			if property := s.properties[key]; property != nil {
				n += property.matches(below)
			} else {
				n += s.values.matches(below)
			}
		}
	}
	return n
}

// matchesAlternatives is matches for what allOf, anyOf and oneOf contribute.
func (s *Schema) matchesAlternatives(value any) (n int) {
	_, n, _ = closest(s.anyOf, nil, value)
	if _, common, valid := closest(s.oneOf, nil, value); valid <= 1 {
		n += common
	}
	for _, one := range s.allOf {
		n += one.matches(value)
	}
	return n
}
