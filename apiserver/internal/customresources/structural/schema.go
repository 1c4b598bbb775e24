package structural

import (
	"encoding/json"
	"fmt"
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	kjson "sigs.k8s.io/json"
)

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	props *apiextensionsv1.JSONSchemaProps

	properties map[string]*Schema
	items      *Schema
	values     *Schema // of additionalProperties
	anyValues  bool    // additionalProperties: true
	// fallback is the default; hasFallback distinguishes none from null.
	fallback    any
	hasFallback bool
	defaulted   int // how many properties have one
	enum        []any
	pattern     func() *regexp.Regexp // nil if there is none

	allOf, anyOf, oneOf []*Schema
	not                 *Schema

	preserve, embedded bool
	// either: an integer or a string.
	either bool
	// formatted: the format is one of texts.
	formatted bool
	// holds: the value may contain an embedded object; ruled: there are CEL rules
	// here or below.
	holds, ruled bool
}

// Compile compiles a schema.
func Compile(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	if props == nil {
		return nil, nil
	}
	s := &Schema{
		props:    props,
		preserve: props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields,
		embedded: props.XEmbeddedResource,
		either:   props.XIntOrString,

		formatted: props.Format != "" && strfmt.Default.ContainsName(props.Format),
	}
	if err := s.decodeValues(); err != nil {
		return nil, err
	}
	if err := s.compileParts(); err != nil {
		return nil, err
	}
	if err := s.compileAlternatives(); err != nil {
		return nil, err
	}
	s.lookForSpecialParts()
	s.dropUnknown()
	s.countDefaulted()
	return s, nil
}

// compileParts compiles the schemas of what a value consists of.
func (s *Schema) compileParts() (err error) {
	if len(s.props.Properties) > 0 {
		s.properties = make(map[string]*Schema, len(s.props.Properties))
		for name := range s.props.Properties {
			property := s.props.Properties[name]
			if s.properties[name], err = Compile(&property); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if s.props.Items != nil {
		if s.items, err = Compile(s.props.Items.Schema); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	if a := s.props.AdditionalProperties; a != nil {
		s.anyValues = a.Allows && a.Schema == nil
		if s.values, err = Compile(a.Schema); err != nil {
			return fmt.Errorf("additionalProperties: %w", err)
		}
	}
	return nil
}

// compileAlternatives compiles the other schemas of the same value.
func (s *Schema) compileAlternatives() (err error) {
	if s.not, err = Compile(s.props.Not); err != nil {
		return fmt.Errorf("not: %w", err)
	}
	for _, some := range []struct {
		from []apiextensionsv1.JSONSchemaProps
		to   *[]*Schema
	}{{s.props.AllOf, &s.allOf}, {s.props.AnyOf, &s.anyOf}, {s.props.OneOf, &s.oneOf}} {
		for i := range some.from {
			one, err := Compile(&some.from[i])
			if err != nil {
				return err
			}
			*some.to = append(*some.to, one)
		}
	}
	return nil
}

// lookForSpecialParts finds out whether there are embedded objects and rules here or below.
func (s *Schema) lookForSpecialParts() {
	s.holds = s.embedded || s.items.holdsEmbedded() || s.values.holdsEmbedded()
	s.ruled = len(s.props.XValidations) > 0 || s.items.HasRules() || s.values.HasRules()
	for _, property := range s.properties {
		s.holds, s.ruled = s.holds || property.holds, s.ruled || property.ruled
	}
}

func (s *Schema) countDefaulted() {
	s.defaulted = 0
	for _, property := range s.properties {
		if property.hasFallback {
			s.defaulted++
		}
	}
}

// decodeValues decodes the parts of a schema that are raw JSON, and its pattern.
func (s *Schema) decodeValues() error {
	if s.props.Default != nil {
		value, err := decodeValue(s.props.Default.Raw)
		if err != nil {
			return fmt.Errorf("default: %w", err)
		}
		s.fallback, s.hasFallback = value, true
	}
	for _, text := range s.props.Enum {
		value, err := decodeValue(text.Raw)
		if err != nil {
			return fmt.Errorf("enum: %w", err)
		}
		s.enum = append(s.enum, value)
	}
	if s.props.Pattern == "" {
		return nil
	}
	if _, err := parsePattern(s.props.Pattern); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	s.pattern = pattern(s.props.Pattern)
	return nil
}

// decodeValue decodes JSON with integers as int64.
func decodeValue(text []byte) (any, error) {
	var value any
	if len(text) == 0 {
		return nil, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// Props is what the schema was made from.
func (s *Schema) Props() *apiextensionsv1.JSONSchemaProps { return s.props }

// Property is the schema of a property, nil if there is none.
func (s *Schema) Property(name string) *Schema { return s.properties[name] }

// Properties are the schemas of all properties; they must not be changed.
func (s *Schema) Properties() map[string]*Schema { return s.properties }

// Items is the schema of a list's entries; nil if there is none.
func (s *Schema) Items() *Schema { return s.items }

// Values is the schema of a map's entries; if it is nil, open reports whether
// there may be entries of any kind.
func (s *Schema) Values() (values *Schema, open bool) { return s.values, s.anyValues }

// Enum are the values that are allowed, if not all.
func (s *Schema) Enum() []any { return s.enum }

// Fallback is the default with the defaults below filled in; ok is false if
// there is none.
func (s *Schema) Fallback() (value any, ok bool) {
	if value, ok = s.BareFallback(); ok {
		s.Complete(value)
	}
	return value, ok
}

// BareFallback is the default as it is written.
func (s *Schema) BareFallback() (value any, ok bool) {
	if s == nil || !s.hasFallback {
		return nil, false
	}
	return copyValue(s.fallback), true
}

// HasRules reports whether there are CEL rules here or below.
func (s *Schema) HasRules() bool { return s != nil && s.ruled }

// copyValue copies JSON.
func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = copyValue(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = copyValue(item)
		}
		return out
	case json.Number:
		return v.String()
	}
	return value
}
