package structural

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Validate validates value, which is at path, against the schema. Faults in
// unchanged parts of old (hasOld) do not prevent a change elsewhere. Duplicates
// are reported last: upstream looks for them in a second pass.
func (s *Schema) Validate(path *field.Path, value, old any, hasOld bool) field.ErrorList {
	errs, _ := s.validate(path, value, old, hasOld)
	if hasOld && slices.ContainsFunc(errs, duplicate) {
		if before, _ := s.validate(nil, old, nil, false); slices.ContainsFunc(before, duplicate) {
			errs = slices.DeleteFunc(errs, duplicate) // it was invalid before
		}
	}
	turn := func(e *field.Error) int {
		if duplicate(e) {
			return 2
		}
		return 1
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return turn(a) - turn(b) })
	return once(errs)
}

// once removes errors that are there already: schemas of the same value may find the same.
func once(errs field.ErrorList) field.ErrorList {
	if len(errs) < 2 {
		return errs
	}
	seen := make(map[string]bool, len(errs))
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		text := e.Error()
		before := seen[text]
		seen[text] = true
		return before
	})
}

func duplicate(e *field.Error) bool {
	return e.Type == field.ErrorTypeDuplicate || e.Detail == needsObjects
}

// ValidateAlone is Validate for a value at a place in the object, with paths of
// errors relative to the value.
func (s *Schema) ValidateAlone(at *field.Path, value, old any, hasOld bool) field.ErrorList {
	errs := s.Validate(nil, value, old, hasOld)
	for _, e := range errs {
		e.Field = at.String() + trimRoot(e.Field)
	}
	return errs
}

// validate also says how much a value has in common with the schema, in upstream's measure: how many
// of upstream's validators look at the value and its parts, and at how many of those the type is
// right. It decides only about which errors are worth showing, see closest.
func (s *Schema) validate(path *field.Path, value, old any, hasOld bool) (errs field.ErrorList, common int) {
	if s == nil || hasOld && s.Same(value, old) {
		return nil, 0
	}
	errs = s.kind(path, value)
	fits := 0
	if len(errs) == 0 {
		fits = 1
	}
	if value == nil {
		return append(errs, s.listed(path, value)...), fits
	}
	failed, below := s.combined(path, value)
	errs = append(errs, failed...)
	common = 4 + below // itself, its enum, and the validator of alternatives, which counts twice
	if s.props.Type != "" || s.props.Format != "" || s.either {
		common += 1 + fits
	}
	failed, below = s.content(path, value, old, hasOld)
	errs = append(errs, failed...)
	return append(errs, s.listed(path, value)...), common + below
}

// content validates what only values of one type have.
func (s *Schema) content(path *field.Path, value, old any, hasOld bool) (errs field.ErrorList, common int) {
	switch v := value.(type) {
	case string:
		if s.formatted {
			common++
		}
		return s.text(path, v), common + 1
	case int64:
		return s.number(path, v, float64(v)), 2
	case float64:
		return s.number(path, v, v), 2
	case []any:
		errs, common = s.list(path, v, old, hasOld)
		return errs, common + 2
	case map[string]any:
		errs, common = s.fields(path, v, old, hasOld)
		return errs, common + 1
	}
	return nil, 0
}

// listed refuses values that are not in the schema's enum, also if they are of
// another type, as upstream does.
func (s *Schema) listed(path *field.Path, value any) field.ErrorList {
	if len(s.enum) == 0 || containsValue(s.enum, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, enumTexts(s.enum))}
}

// name is the name of a place in messages.
func name(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// kind validates the value's type. The rest of the schema is validated for
// values of a wrong type too, as upstream does.
func (s *Schema) kind(path *field.Path, value any) field.ErrorList {
	want := s.props.Type
	got := kindOf(value)
	switch {
	case value == nil && (s.props.Nullable || want == "" && !s.props.XIntOrString):
		return nil
	case s.either:
		if got == "integer" || got == "string" || isWhole(value) {
			return nil
		}
		want = "integer,string"
	case want == "" && s.takes(got), want == got, want == "number" && got == "integer", want == "integer" && isWhole(value):
		return nil
	case want == "integer" && got == "number":
		return s.notWhole(path)
	}
	if format := s.props.Format; got != "string" && got != "array" && got != "null" && knownFormat(want, format) {
		want, got = format, formatOf(value) // upstream's words if there is a format
	}
	return field.ErrorList{field.TypeInvalid(path, got, fmt.Sprintf("%s in body must be of type %s: %q", name(path), want, got))}
}

// takes reports whether a schema without a type lets values of a kind pass: a format of texts
// is a type for all but null and lists, as upstream has it.
func (s *Schema) takes(kind string) bool {
	return kind == "string" || kind == "array" || kind == "null" || !s.formatted
}

// formatOf is upstream's word for the format of a JSON value, "" if it has none.
func formatOf(value any) string {
	switch value.(type) {
	case int64:
		return "int64"
	case float64:
		return "float64"
	}
	return ""
}

// notWhole are upstream's two errors for a number that should be an integer: the
// wrong type, and the wrong format.
func (s *Schema) notWhole(path *field.Path) field.ErrorList {
	want, got, form := "integer", "number", "(default format)"
	if f := s.props.Format; f == "int32" || f == "int64" {
		want, got, form = f, "float64", "with format "+f
	}
	return field.ErrorList{
		field.TypeInvalid(path, got, fmt.Sprintf("%s in body must be of type %s: %q", name(path), want, got)),
		field.Invalid(nil, "", fmt.Sprintf("Checked value must be of type integer %s in %s", form, name(path))),
	}
}

func isWhole(value any) bool {
	v, ok := value.(float64)
	return ok && v == math.Trunc(v) && math.Abs(v) < 1<<53
}

// text checks a string's length before its format, and reports the first fault.
func (s *Schema) text(path *field.Path, value string) (errs field.ErrorList) {
	p, at := s.props, name(path)
	length := int64(utf8.RuneCountInString(value))
	switch {
	case p.MaxLength != nil && length > *p.MaxLength:
		errs = append(errs, field.TooLong(path, value, int(*p.MaxLength)))
	case p.MinLength != nil && length < *p.MinLength:
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("%s in body should be at least %d chars long", at, *p.MinLength)))
	case s.pattern != nil && !s.pattern().MatchString(value):
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("%s in body should match '%s'", at, p.Pattern)))
	}
	if mayBeText(p.Type) && s.formatted && !strfmt.Default.Validates(p.Format, value) {
		errs = append(errs, field.TypeInvalid(path, value, fmt.Sprintf("%s in body must be of type %s: %q", at, p.Format, value)))
	}
	return errs
}

func (s *Schema) number(path *field.Path, value any, v float64) (errs field.ErrorList) {
	p, at := s.props, name(path)
	inRange := func(what string, number float64) {
		whole := p.Type == "integer" && p.Format == "int32" && (number < math.MinInt32 || number > math.MaxInt32)
		if whole || p.Type == "number" && p.Format == "float" && math.Abs(number) > math.MaxFloat32 {
			errs = append(errs, field.Invalid(nil, "", fmt.Sprintf("%s must be of type %s with format %s in %s", what, p.Type, p.Format, at)))
		}
	}
	inRange("Checked value", v)
	invalid := func(text string, bound float64) {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("%s in body should be %s %v", at, text, bound)))
	}
	if p.MultipleOf != nil && *p.MultipleOf > 0 {
		inRange("MultipleOf value", *p.MultipleOf)
		if !isMultiple(value, v, *p.MultipleOf) {
			invalid("a multiple of", *p.MultipleOf)
		}
	}
	if p.Maximum != nil {
		inRange("Maximum boundary value", *p.Maximum)
		switch {
		case p.ExclusiveMaximum && v >= *p.Maximum:
			invalid("less than", *p.Maximum)
		case v > *p.Maximum:
			invalid("less than or equal to", *p.Maximum)
		}
	}
	if p.Minimum != nil {
		inRange("Minimum boundary value", *p.Minimum)
		switch {
		case p.ExclusiveMinimum && v <= *p.Minimum:
			invalid("greater than", *p.Minimum)
		case v < *p.Minimum:
			invalid("greater than or equal to", *p.Minimum)
		}
	}
	return errs
}

func (s *Schema) list(path *field.Path, value []any, old any, hasOld bool) (errs field.ErrorList, common int) {
	p := s.props
	count := int64(len(value))
	if p.MinItems != nil && count < *p.MinItems {
		errs = append(errs, field.Invalid(path, count, fmt.Sprintf("%s in body should have at least %d items", name(path), *p.MinItems)))
	}
	if p.MaxItems != nil && count > *p.MaxItems {
		errs = append(errs, field.TooMany(path, int(count), int(*p.MaxItems)))
	}
	errs = append(errs, s.duplicates(path, value)...)
	if s.items == nil {
		return errs, 0
	}
	before := s.counterparts(old)
	for i, item := range value {
		var was any
		found := false
		if hasOld {
			was, found = before(i, item)
		}
		failed, below := s.items.validate(path.Index(i), item, was, found)
		errs, common = append(errs, failed...), common+below
	}
	return errs, common
}

func (s *Schema) fields(path *field.Path, value map[string]any, old any, hasOld bool) (errs field.ErrorList, common int) {
	p := s.props
	count := int64(len(value))
	if p.MinProperties != nil && count < *p.MinProperties {
		errs = append(errs, field.Invalid(path, count, fmt.Sprintf("%s in body should have at least %d properties",
			name(path), *p.MinProperties)))
	}
	if p.MaxProperties != nil && count > *p.MaxProperties {
		errs = append(errs, field.TooMany(path, int(count), int(*p.MaxProperties)))
	}
	before, _ := old.(map[string]any)
	closed := p.AdditionalProperties != nil && p.AdditionalProperties.Schema == nil && !p.AdditionalProperties.Allows
	for _, key := range slices.Sorted(maps.Keys(value)) {
		below := s.properties[key]
		if below == nil {
			below = s.values
		}
		if below == nil && closed {
			errs = append(errs, field.Invalid(path, key, fmt.Sprintf("%s.%s in body is a forbidden property", name(path), key)))
		}
		if below == nil {
			continue
		}
		was, found := before[key]
		// Of the version and the kind nobody sees how they were.
		found = found && !(path == nil && (key == "apiVersion" || key == "kind"))
		failed, n := below.validate(path.Child(key), value[key], was, hasOld && found)
		errs, common = append(errs, failed...), common+n
	}
	for _, required := range p.Required {
		if _, ok := value[required]; !ok {
			errs = append(errs, field.Required(path.Child(required), ""))
		}
	}
	return errs, common
}

func containsValue(values []any, value any) bool {
	return slices.ContainsFunc(values, func(one any) bool { return sameValue(one, value) })
}

// sameValue compares JSON; 1 and 1.0 are the same number.
func sameValue(a, b any) bool {
	if whole, ok := a.(int64); ok {
		if broken, ok := b.(float64); ok {
			return float64(whole) == broken
		}
	}
	if broken, ok := a.(float64); ok {
		if whole, ok := b.(int64); ok {
			return float64(whole) == broken
		}
	}
	return reflect.DeepEqual(a, b)
}

func enumTexts(values []any) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i], _ = value.(string)
		if text, err := json.Marshal(value); err == nil && kindOf(value) != "string" {
			out[i] = string(text)
		}
	}
	return out
}

func lower(text string) string { return strings.ToLower(text) }

// isMultiple reports whether a number is a multiple of another, as upstream does:
// whole numbers exactly, others up to what their binary form loses (0.3 and 0.1).
func isMultiple(value any, v, of float64) bool {
	if whole, ok := value.(int64); ok && of == math.Trunc(of) && of < 1<<53 {
		return whole%int64(of) == 0
	}
	times := v / of
	nearest := math.Round(times)
	return times == nearest || math.Abs(times-nearest) < 1e-9*math.Abs(nearest)
}
