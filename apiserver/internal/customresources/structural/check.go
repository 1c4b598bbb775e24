package structural

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Check refuses what may not be the schema of a custom resource: it has to be
// structural, which means that it specifies the type of every field exactly
// once.
func Check(path *field.Path, root *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	c := &checker{}
	c.structural(path, root)
	// Structural faults are reported in order of the fields, as in upstream.
	slices.SortStableFunc(c.errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	c.unsupported(path, root)
	structural := len(c.errs) == 0
	c.objectMeta(path, root, true, metaPlace{})
	switch {
	case !structural || c.dialect && len(c.errs) > 0:
		return c.errs
	case c.dialect: // which upstream says only if there is no other fault
		return field.ErrorList{field.Invalid(path, "", "OpenAPIV3Schema 'schema' is not supported")}
	}
	compiled, err := Compile(root)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	compiled.takeAnyForEither()
	compiled.checkDefaults(path, place{root: true}, &c.errs)
	return c.errs
}

// Violations are why a schema is not structural, as it may be if it was stored before that was
// required. What else Check refuses is left out.
func Violations(path *field.Path, root *apiextensionsv1.JSONSchemaProps) field.ErrorList {
	c := &checker{stored: true}
	c.structural(path, root)
	slices.SortFunc(c.errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return c.errs
}

func (c *checker) structural(path *field.Path, root *apiextensionsv1.JSONSchemaProps) {
	c.structure(path, root, level{root: true})
	for _, some := range combinations(path, root) {
		c.known(path, root, some.path, some.props)
	}
}

type checker struct {
	errs field.ErrorList
	// stored: the schema is there already, and has to be structural only.
	stored bool
	steps  int // of the patterns so far
	// dialect: a $schema names the language of a schema.
	dialect bool
}

func (c *checker) add(err *field.Error) { c.errs = append(c.errs, err) }

// level is the position of a schema within a schema.
type level struct {
	root bool
	// name is that of a property; item and value are of lists and maps.
	name        string
	item, value bool
}

var types = []string{"array", "boolean", "integer", "number", "object", "string"}

// unsupported refuses JSON schema keywords that custom resources don't support.
func (c *checker) unsupported(path *field.Path, p *apiextensionsv1.JSONSchemaProps) {
	forbid := func(is bool, name, text string) {
		if is {
			c.add(field.Forbidden(path.Child(name), text))
		}
	}
	forbid(len(p.PatternProperties) > 0, "patternProperties", "patternProperties is not supported")
	forbid(len(p.Definitions) > 0, "definitions", "definitions is not supported")
	forbid(p.Dependencies != nil, "dependencies", "dependencies is not supported")
	forbid(p.ID != "", "id", "id is not supported")
	c.dialect = c.dialect || p.Schema != ""
	forbid(p.AdditionalItems != nil, "additionalItems", "additionalItems is not supported")
	forbid(p.Ref != nil, "$ref", "$ref is not supported")
	forbid(p.UniqueItems, "uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
	forbid(p.Type == "null", "type", "type cannot be set to null, use nullable as an alternative")
	forbid(p.AdditionalProperties != nil && len(p.Properties) > 0 && (p.AdditionalProperties.Schema != nil || !p.AdditionalProperties.Allows),
		"additionalProperties", "additionalProperties and properties are mutual exclusive")
	forbid(p.Items != nil && len(p.Items.JSONSchemas) > 0, "items", "items must be a schema object and not an array")
	if p.XPreserveUnknownFields != nil && !*p.XPreserveUnknownFields {
		c.add(field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	c.listAndMap(path, p)
	each(path, p, func(path *field.Path, below *apiextensionsv1.JSONSchemaProps, _ level) { c.unsupported(path, below) })
	for _, some := range combinations(path, p) {
		c.unsupported(some.path, some.props)
	}
}

// each calls f for the schemas of a value's parts.
func each(path *field.Path, p *apiextensionsv1.JSONSchemaProps, f func(path *field.Path, below *apiextensionsv1.JSONSchemaProps, l level)) {
	names := make([]string, 0, len(p.Properties))
	for name := range p.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		below := p.Properties[name]
		f(path.Child("properties").Key(name), &below, level{name: name})
	}
	if p.Items != nil && p.Items.Schema != nil {
		f(path.Child("items"), p.Items.Schema, level{item: true})
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		f(path.Child("additionalProperties"), p.AdditionalProperties.Schema, level{value: true})
	}
}

type combination struct {
	path  *field.Path
	props *apiextensionsv1.JSONSchemaProps
}

// combinations are the schemas in allOf, anyOf, oneOf and not.
func combinations(path *field.Path, p *apiextensionsv1.JSONSchemaProps) (out []combination) {
	for _, some := range []struct {
		name  string
		props []apiextensionsv1.JSONSchemaProps
	}{{"allOf", p.AllOf}, {"anyOf", p.AnyOf}, {"oneOf", p.OneOf}} {
		for i := range some.props {
			out = append(out, combination{path.Child(some.name).Index(i), &some.props[i]})
		}
	}
	if p.Not != nil {
		out = append(out, combination{path.Child("not"), p.Not})
	}
	return out
}

// integerOrString is the anyOf that tools write for x-kubernetes-int-or-string:
// next to it, or in the first allOf.
var integerOrString = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}

// eitherWay reports whether some is part of such an anyOf in p, where it may have a type.
func eitherWay(p *apiextensionsv1.JSONSchemaProps, some combination) bool {
	return reflect.DeepEqual(p.AnyOf, integerOrString) && (some.props == &p.AnyOf[0] || some.props == &p.AnyOf[1])
}

// structure checks a schema outside of combinations.
func (c *checker) structure(path *field.Path, p *apiextensionsv1.JSONSchemaProps, l level) {
	preserve := p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
	switch {
	case p.XEmbeddedResource && p.Type != "object": // see below
	case p.Type != "" || p.XIntOrString || preserve:
	case l.root:
		c.add(field.Required(path.Child("type"), "must not be empty at the root"))
	case l.item:
		c.add(field.Required(path.Child("type"), "must not be empty for specified array items"))
	default:
		c.add(field.Required(path.Child("type"), "must not be empty for specified object fields"))
	}
	if l.root && p.Type != "" && p.Type != "object" {
		c.add(field.Invalid(path.Child("type"), p.Type, "must be object at the root"))
	}
	if l.root && p.Nullable && !c.stored {
		c.add(field.Forbidden(path.Child("nullable"), "nullable cannot be true at the root"))
	}
	if l.root && p.AdditionalProperties != nil {
		c.add(field.Forbidden(path.Child("additionalProperties"), "must not be used at the root"))
	}
	if p.XIntOrString && p.XEmbeddedResource {
		c.add(field.Invalid(path.Child("x-kubernetes-embedded-resource"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	if p.XIntOrString && preserve {
		c.add(field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	c.words(path, p)
	if p.Type == "array" && (p.Items == nil || p.Items.Schema == nil && len(p.Items.JSONSchemas) == 0) {
		c.add(field.Required(path.Child("items"), "must be specified"))
	}
	if p.XEmbeddedResource || l.root {
		c.object(path, p, l.root)
	}
	each(path, p, c.structure)
	for _, some := range combinations(path, p) {
		c.valuesOnly(some.path, some.props, eitherWay(p, some), len(p.AllOf) > 0 && some.props == &p.AllOf[0])
	}
}

// words checks the keywords of a schema.
func (c *checker) words(path *field.Path, p *apiextensionsv1.JSONSchemaProps) {
	if !c.stored && p.Type != "" && !slices.Contains(types, p.Type) {
		c.add(field.NotSupported(path.Child("type"), p.Type, types))
	}
	parsed, err := parsePattern(p.Pattern)
	if err != nil {
		c.add(field.Invalid(path.Child("pattern"), p.Pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err)))
		return
	}
	before := c.steps
	if c.steps += steps(parsed); !c.stored && before <= mostSteps && c.steps > mostSteps {
		c.add(field.Forbidden(path.Child("pattern"),
			fmt.Sprintf("the patterns of a schema are repeated too often: together they take more than %d steps", mostSteps)))
	}
}

// must refuses a type that does not fit another keyword.
func (c *checker) must(path *field.Path, p *apiextensionsv1.JSONSchemaProps, is, where string) {
	switch p.Type {
	case is:
	case "":
		c.add(field.Required(path.Child("type"), "must be "+is+" if "+where))
	default:
		c.add(field.Invalid(path.Child("type"), p.Type, "must be "+is+" if "+where))
	}
}

// object checks the schema of a whole object, which always has metadata.
func (c *checker) object(path *field.Path, p *apiextensionsv1.JSONSchemaProps, root bool) {
	preserve := p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
	if p.XEmbeddedResource { // also for the root, which need not say so
		if !preserve && len(p.Properties) == 0 {
			c.add(field.Required(path.Child("properties"),
				"must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
		}
		c.must(path, p, "object", "x-kubernetes-embedded-resource is true")
		if p.AdditionalProperties != nil {
			c.add(field.Forbidden(path.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"))
		}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if property, ok := p.Properties[name]; ok && property.Type != "string" {
			c.add(field.Invalid(path.Child("properties").Key(name).Child("type"), property.Type, "must be string"))
		}
	}
	if meta, ok := p.Properties["metadata"]; ok {
		c.metadata(path.Child("properties").Key("metadata"), meta, root)
	}
}

// metadata checks the schema of metadata. For a whole object, it may restrict
// names only: the rest is the same for every object.
func (c *checker) metadata(path *field.Path, meta apiextensionsv1.JSONSchemaProps, root bool) {
	if meta.Type != "object" {
		c.add(field.Invalid(path.Child("type"), meta.Type, "must be object"))
	}
	if !root {
		return
	}
	rest := map[string]apiextensionsv1.JSONSchemaProps{}
	for name, property := range meta.Properties {
		if name != "name" && name != "generateName" {
			rest[name] = property
		}
	}
	meta.Type, meta.Properties, meta.Default = "", nil, nil
	if len(rest) > 0 || !reflect.DeepEqual(meta, apiextensionsv1.JSONSchemaProps{}) {
		c.add(field.Forbidden(path, "must not specify anything other than name and generateName, but metadata is implicitly specified"))
	}
}

// valuesOnly checks a schema inside a combination: it may specify neither
// structure, nor fields that the structure lacks. typed: it may have a type;
// either: the members of its anyOf may have one each.
func (c *checker) valuesOnly(path *field.Path, p *apiextensionsv1.JSONSchemaProps, typed, either bool) {
	empty := func(is bool, name, text string) {
		if !is {
			c.add(field.Forbidden(path.Child(name), text))
		}
	}
	const must = "must be empty to be structural"
	empty(p.Description == "", "description", must)
	empty(p.Type == "" || typed, "type", must)
	empty(p.Title == "", "title", must)
	empty(p.Default == nil, "default", "must be undefined to be structural")
	empty(p.AdditionalProperties == nil || p.AdditionalProperties.Schema == nil && !p.AdditionalProperties.Allows, "additionalProperties",
		"must be undefined to be structural")
	empty(!p.Nullable, "nullable", "must be false to be structural")
	empty(p.XPreserveUnknownFields == nil, "x-kubernetes-preserve-unknown-fields", "must be false to be structural")
	empty(!p.XEmbeddedResource, "x-kubernetes-embedded-resource", "must be false to be structural")
	empty(!p.XIntOrString, "x-kubernetes-int-or-string", "must be false to be structural")
	empty(p.XListType == nil, "x-kubernetes-list-type", "must be undefined to be structural")
	empty(len(p.XListMapKeys) == 0, "x-kubernetes-list-map-keys", must)
	empty(p.XMapType == nil, "x-kubernetes-map-type", "must be undefined to be structural")
	empty(len(p.XValidations) == 0, "x-kubernetes-validations", must)
	c.words(path, p)
	inside := *p
	inside.AdditionalProperties = nil // refused as a whole
	each(path, &inside, func(at *field.Path, below *apiextensionsv1.JSONSchemaProps, _ level) {
		c.valuesOnly(at, below, false, false)
	})
	for _, some := range combinations(path, p) {
		c.valuesOnly(some.path, some.props, either && eitherWay(p, some), false)
	}
	if _, ok := p.Properties["metadata"]; ok {
		c.add(field.Forbidden(path.Child("properties").Key("metadata"), "must not be specified in a nested context"))
	}
}

// listAndMap checks the keywords for merging lists and maps.
func (c *checker) listAndMap(path *field.Path, p *apiextensionsv1.JSONSchemaProps) {
	if p.XMapType != nil {
		c.must(path, p, "object", "x-kubernetes-map-type is specified")
		if *p.XMapType != "atomic" && *p.XMapType != "granular" {
			c.add(field.NotSupported(path.Child("x-kubernetes-map-type"), *p.XMapType, []string{"atomic", "granular"}))
		}
	}
	keys := path.Child("x-kubernetes-list-map-keys")
	if p.XListType == nil {
		if len(p.XListMapKeys) > 0 {
			c.add(field.Required(path.Child("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"))
		}
		return
	}
	c.must(path, p, "array", "x-kubernetes-list-type is specified")
	if len(p.XListMapKeys) > 0 && *p.XListType != "map" {
		c.add(field.Invalid(path.Child("x-kubernetes-list-type"), *p.XListType, "must be map if x-kubernetes-list-map-keys is non-empty"))
	}
	var items *apiextensionsv1.JSONSchemaProps
	if p.Items != nil {
		items = p.Items.Schema
	}
	switch kind := *p.XListType; kind {
	case "atomic":
	case "set":
		c.setItems(path.Child("items"), items)
	case "map":
		if len(p.XListMapKeys) == 0 {
			c.add(field.Required(keys, "must not be empty if x-kubernetes-list-type is map"))
		}
		c.mapItems(path.Child("items"), keys, p.XListMapKeys, items)
	default:
		c.add(field.NotSupported(path.Child("x-kubernetes-list-type"), kind, []string{"atomic", "set", "map"}))
	}
}

func (c *checker) setItems(path *field.Path, items *apiextensionsv1.JSONSchemaProps) {
	if items == nil {
		return
	}
	if items.Nullable {
		c.add(field.Forbidden(path.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is set"))
	}
	if items.Type == "object" && ptr.Deref(items.XMapType, "") != "atomic" {
		c.add(field.Invalid(path.Child("x-kubernetes-map-type"), items.XMapType,
			"must be atomic as item of a list with x-kubernetes-list-type=set"))
	}
	if items.Type == "array" && items.XListType != nil && *items.XListType != "atomic" {
		c.add(field.Invalid(path.Child("x-kubernetes-list-type"), items.XListType,
			"must be atomic as item of a list with x-kubernetes-list-type=set"))
	}
}

func (c *checker) mapItems(path, keys *field.Path, names []string, items *apiextensionsv1.JSONSchemaProps) {
	if items == nil {
		c.add(field.Required(path, "must have a schema if x-kubernetes-list-type is map"))
		return
	}
	if items.Type != "object" {
		c.add(field.Invalid(path.Child("type"), items.Type, "must be object if parent array's x-kubernetes-list-type is map"))
		return
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			c.add(field.Invalid(keys, names, "must not contain duplicate entries"))
			return
		}
		seen[name] = true
		property, ok := items.Properties[name]
		if !ok {
			c.add(field.Invalid(keys, names, "entries must all be names of item properties"))
			continue
		}
		at := path.Child("properties").Key(name)
		if property.Type == "object" || property.Type == "array" {
			c.add(field.Invalid(at.Child("type"), property.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if property.Default == nil && !slices.Contains(items.Required, name) {
			c.add(field.Required(at.Child("default"),
				"this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if property.Nullable {
			c.add(field.Forbidden(at.Child("nullable"), "cannot be nullable when it is in x-kubernetes-list-map-keys"))
		}
	}
}
