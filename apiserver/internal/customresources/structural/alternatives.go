package structural

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// combined checks allOf, anyOf, oneOf and not.
func (s *Schema) combined(path *field.Path, value any) (errs field.ErrorList, common int) {
	fail := func(format string, args ...any) {
		errs = append(errs, field.Invalid(nil, "", fmt.Sprintf("%q ", name(path))+fmt.Sprintf(format, args...)))
	}
	if len(s.anyOf) > 0 {
		failed, n, valid := closest(s.anyOf, path, value, 1)
		if common = n; valid == 0 {
			fail("must validate at least one schema (anyOf)")
			errs = append(errs, failed...)
		}
	}
	if len(s.oneOf) > 0 {
		switch failed, n, valid := closest(s.oneOf, path, value, len(s.oneOf)); {
		case valid == 0:
			fail("must validate one and only one schema (oneOf). Found none valid")
			errs, common = append(errs, failed...), common+n
		case valid == 1:
			common += n
		default:
			fail("must validate one and only one schema (oneOf). Found %d valid alternatives", valid)
		}
	}
	valid := 0
	for _, one := range s.allOf {
		failed, n := one.validate(path, value, nil, false)
		errs, common = append(errs, failed...), common+n
		if len(failed) == 0 {
			valid++
		}
	}
	switch {
	case valid == len(s.allOf):
	case valid == 0:
		fail("must validate all the schemas (allOf). None validated")
	default:
		fail("must validate all the schemas (allOf)")
	}
	if s.not != nil {
		if failed, _ := s.not.validate(path, value, nil, false); len(failed) == 0 {
			fail("must not validate the schema (not)")
		}
	}
	return errs, common
}

// closest returns the errors by which a value misses that schema of schemas which has the most
// in common with it, the first of several, and how much that is. If some schema matches, there
// are no errors, and it is the first one that counts; valid is how many match, up to enough.
func closest(schemas []*Schema, path *field.Path, value any, enough int) (errs field.ErrorList, common, valid int) {
	for _, one := range schemas {
		switch failed, n := one.validate(path, value, nil, false); {
		case len(failed) == 0:
			if valid++; valid == 1 {
				errs, common = nil, n
			}
			if valid == enough {
				return errs, common, valid
			}
		case valid == 0 && (errs == nil || n > common):
			errs, common = failed, n
		}
	}
	return errs, common, valid
}
