package validationrules

import (
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/common"

	"kctl/apiserver/internal/customresources/structural"
)

// adapted adapts a schema to the library that defines its values in CEL. It is
// made once per schema, since values refer to it.
type adapted struct {
	of     *structural.Schema
	props  *apiextensionsv1.JSONSchemaProps
	fields map[string]common.Schema
	items  common.Schema
	values common.SchemaOrBool
	// whole is the same with the fields that every object has.
	whole *adapted
}

var _ common.Schema = (*adapted)(nil)

// newAdapted adapts a schema; root: it is that of a whole object.
func newAdapted(s *structural.Schema, root bool) *adapted {
	a := &adapted{of: s, props: s.Props()}
	if all := s.Properties(); len(all) > 0 {
		a.fields = make(map[string]common.Schema, len(all))
		for name, property := range all {
			a.fields[name] = newAdapted(property, false)
		}
	}
	if items := s.Items(); items != nil {
		a.items = newAdapted(items, false)
	}
	if values, open := s.Values(); values != nil {
		a.values = schemaOrBool{newAdapted(values, false)}
	} else if open {
		a.values = schemaOrBool{}
	}
	if root || a.props.XEmbeddedResource {
		a.whole = a.withMeta()
	}
	return a
}

var text = adaptedProps(apiextensionsv1.JSONSchemaProps{Type: "string"})

func adaptedProps(props apiextensionsv1.JSONSchemaProps) *adapted { return &adapted{props: &props} }

// withMeta adds the fields of every object that rules see: kind and name.
func (a *adapted) withMeta() *adapted {
	out := &adapted{of: a.of, props: a.props, items: a.items, values: a.values, fields: make(map[string]common.Schema, len(a.fields)+3)}
	maps.Copy(out.fields, a.fields)
	meta := adaptedProps(apiextensionsv1.JSONSchemaProps{Type: "object"})
	meta.fields = map[string]common.Schema{"name": text, "generateName": text}
	if given, ok := a.fields["metadata"].(*adapted); ok {
		meta.props = given.props
		maps.Copy(meta.fields, given.fields)
	}
	out.fields["kind"], out.fields["apiVersion"], out.fields["metadata"] = text, text, meta
	out.whole = out
	return out
}

type schemaOrBool struct{ of *adapted }

func (s schemaOrBool) Schema() common.Schema {
	if s.of == nil {
		return nil
	}
	return s.of
}

func (s schemaOrBool) Allows() bool { return true }

func (a *adapted) Type() string {
	if a.props.Type == "" && a.props.XIntOrString {
		return ""
	}
	return a.props.Type
}
func (a *adapted) Format() string                            { return a.props.Format }
func (a *adapted) Items() common.Schema                      { return a.items }
func (a *adapted) Properties() map[string]common.Schema      { return a.fields }
func (a *adapted) AdditionalProperties() common.SchemaOrBool { return a.values }
func (a *adapted) Pattern() string                           { return a.props.Pattern }
func (a *adapted) Minimum() *float64                         { return a.props.Minimum }
func (a *adapted) IsExclusiveMinimum() bool                  { return a.props.ExclusiveMinimum }
func (a *adapted) Maximum() *float64                         { return a.props.Maximum }
func (a *adapted) IsExclusiveMaximum() bool                  { return a.props.ExclusiveMaximum }
func (a *adapted) MultipleOf() *float64                      { return a.props.MultipleOf }
func (a *adapted) MinItems() *int64                          { return a.props.MinItems }
func (a *adapted) MaxItems() *int64                          { return a.props.MaxItems }
func (a *adapted) MinLength() *int64                         { return a.props.MinLength }
func (a *adapted) MaxLength() *int64                         { return a.props.MaxLength }
func (a *adapted) MinProperties() *int64                     { return a.props.MinProperties }
func (a *adapted) MaxProperties() *int64                     { return a.props.MaxProperties }
func (a *adapted) Required() []string                        { return a.props.Required }
func (a *adapted) Nullable() bool                            { return a.props.Nullable }
func (a *adapted) UniqueItems() bool                         { return a.props.UniqueItems }
func (a *adapted) IsXIntOrString() bool                      { return a.props.XIntOrString }
func (a *adapted) IsXEmbeddedResource() bool                 { return a.props.XEmbeddedResource }
func (a *adapted) XListMapKeys() []string                    { return a.props.XListMapKeys }

// Keywords that restrict values without changing their type don't matter to CEL.
func (a *adapted) AllOf() []common.Schema                { return nil }
func (a *adapted) OneOf() []common.Schema                { return nil }
func (a *adapted) AnyOf() []common.Schema                { return nil }
func (a *adapted) Not() common.Schema                    { return nil }
func (a *adapted) XValidations() []common.ValidationRule { return nil }

func (a *adapted) Default() any {
	if a.of == nil {
		return nil
	}
	value, _ := a.of.Fallback()
	return value
}

func (a *adapted) Enum() []any {
	if a.of == nil {
		return nil
	}
	return a.of.Enum()
}

func (a *adapted) IsXPreserveUnknownFields() bool {
	return a.props.XPreserveUnknownFields != nil && *a.props.XPreserveUnknownFields
}

func (a *adapted) XListType() string {
	if a.props.XListType == nil {
		return ""
	}
	return *a.props.XListType
}

func (a *adapted) XMapType() string {
	if a.props.XMapType == nil {
		return ""
	}
	return *a.props.XMapType
}

// WithTypeAndObjectMeta implements common.Schema.
func (a *adapted) WithTypeAndObjectMeta() common.Schema {
	if a.whole != nil {
		return a.whole
	}
	return a.withMeta()
}
