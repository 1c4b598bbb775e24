package customresourcedefinition

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/customresources/structural"
	"kctl/apiserver/internal/customresources/validationrules"
	"kctl/apiserver/internal/field"
)

// version is one version of a definition.
type version = apiextensionsv1.CustomResourceDefinitionVersion

// validateVersions validates the versions, except what all of them have in common.
func validateVersions(ctx context.Context, d, old *Definition, spec *field.Path) (errs field.ErrorList) {
	path := spec.Child("versions")
	errs = append(errs, requireSchemas(d, old, path)...)
	common := commonParts(d.Spec.Versions, spec)
	names, storage := map[string]bool{}, 0
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		names[v.Name] = true
		if v.Storage {
			storage++
		}
		errs = append(errs, validateNameAndDeprecation(v, path.Index(i))...)
		if !unchangedVersion(v, d, old) { // else stored before the rule existed
			errs = append(errs, validateParts(ctx, v, d, old, hasStatus(v), ownParts(common, path.Index(i)))...)
		}
	}
	if len(names) != len(d.Spec.Versions) {
		errs = append(errs, field.Invalid(path, d.Spec.Versions, "must contain unique version names"))
	}
	if storage != 1 {
		errs = append(errs, field.Invalid(path, d.Spec.Versions, "must have exactly one version marked as storage version"))
	}
	if len(d.Spec.Versions) > 0 && d.Spec.Versions[0].Name != "" { // which is what spec.version named before there were several
		for _, problem := range validation.IsDNS1035Label(d.Spec.Versions[0].Name) {
			errs = append(errs, field.Invalid(spec.Child("version"), d.Spec.Versions[0].Name, problem))
		}
	}
	return errs
}

// requireSchemas requires a schema of each version. Definitions from before schemas were
// required may go on without, unless they have the server drop fields that have none.
func requireSchemas(d, old *Definition, path *field.Path) (errs field.ErrorList) {
	legacy := old != nil && slices.ContainsFunc(old.Spec.Versions, func(v version) bool { return schemaOf(&v) == nil })
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		at := path.Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case schemaOf(v) != nil:
		case !legacy:
			errs = append(errs, field.Required(at, ""))
		case v.Served && !d.Spec.PreserveUnknownFields:
			errs = append(errs, field.Required(at, "because otherwise all fields are pruned"))
		}
	}
	return errs
}

// validateCommonParts validates what all versions have in common.
func validateCommonParts(ctx context.Context, d, old *Definition, spec *field.Path) field.ErrorList {
	changed := slices.ContainsFunc(d.Spec.Versions, func(v version) bool { return !unchangedVersion(&v, d, old) })
	if !changed { // stored before the rule existed
		return nil
	}
	status := slices.ContainsFunc(d.Spec.Versions, func(v version) bool { return hasStatus(&v) })
	return validateParts(ctx, &d.Spec.Versions[0], d, old, status, commonParts(d.Spec.Versions, spec))
}

func hasStatus(v *version) bool { return v.Subresources != nil && v.Subresources.Status != nil }

// parts are the paths in errors of those parts of a version that are validated; the
// others are nil.
type parts struct {
	schema, subresources, columns, selectable *field.Path
	// noSchema is what is said of selectable fields without a schema.
	noSchema string
}

// commonParts are what all versions have in common. Upstream validates it once, under
// the paths from before there were versions.
func commonParts(versions []version, spec *field.Path) parts {
	common := parts{
		schema: spec.Child("validation", "openAPIV3Schema"), subresources: spec.Child("subresources"),
		columns: spec.Child("additionalPrinterColumns"), selectable: spec.Child("selectableFields"),
		noSchema: "may only be set when validations.schema is included",
	}
	for i := range versions {
		a, b := &versions[0], &versions[i]
		if !apiequality.Semantic.DeepEqual(a.Schema, b.Schema) {
			common.schema = nil
		}
		if !apiequality.Semantic.DeepEqual(a.Subresources, b.Subresources) {
			common.subresources = nil
		}
		if !apiequality.Semantic.DeepEqual(a.AdditionalPrinterColumns, b.AdditionalPrinterColumns) {
			common.columns = nil
		}
		if !apiequality.Semantic.DeepEqual(a.SelectableFields, b.SelectableFields) {
			common.selectable = nil
		}
	}
	return common
}

// ownParts are those of a version that are not common to all.
func ownParts(common parts, version *field.Path) parts {
	own := parts{noSchema: "may only be set when `version.schema.openAPIV3Schema` is not included"} // upstream's words
	if common.schema == nil {
		own.schema = version.Child("schema", "openAPIV3Schema")
	}
	if common.subresources == nil {
		own.subresources = version.Child("subresources")
	}
	if common.columns == nil {
		own.columns = version.Child("additionalPrinterColumns")
	}
	if common.selectable == nil {
		own.selectable = version.Child("selectableFields")
	}
	return own
}

func schemaOf(v *version) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

func unchangedVersion(v *version, d, old *Definition) bool {
	return old != nil && !beginsToDrop(d, old) && slices.ContainsFunc(old.Spec.Versions, func(before version) bool {
		return before.Name == v.Name && apiequality.Semantic.DeepEqual(before, *v)
	})
}

// beginsToDrop reports whether fields that no schema has were kept so far and are dropped from
// now on. Only a structural schema says which those are.
func beginsToDrop(d, old *Definition) bool {
	return old.Spec.PreserveUnknownFields && !d.Spec.PreserveUnknownFields
}

func unchangedSchema(v *version, old *Definition) bool {
	return old != nil && slices.ContainsFunc(old.Spec.Versions, func(before version) bool {
		return before.Name == v.Name && apiequality.Semantic.DeepEqual(before.Schema, v.Schema)
	})
}

// expressionsOf are those of all versions.
func expressionsOf(old *Definition) validationrules.Expressions {
	if old == nil {
		return nil
	}
	all := validationrules.Expressions{}
	for i := range old.Spec.Versions {
		all.Add(schemaOf(&old.Spec.Versions[i]))
	}
	return all
}

// validateNameAndDeprecation validates the name and the deprecation of a version.
func validateNameAndDeprecation(v *version, path *field.Path) (errs field.ErrorList) {
	for _, problem := range validation.IsDNS1035Label(v.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), v.Name, problem))
	}
	if v.DeprecationWarning == nil {
		return errs
	}
	text, at := *v.DeprecationWarning, path.Child("deprecationWarning")
	switch {
	case !v.Deprecated:
		errs = append(errs, field.Invalid(at, text, "can only be set for deprecated versions"))
	case text == "":
		errs = append(errs, field.Invalid(at, text, "must not be an empty string"))
	case len(text) > 256:
		errs = append(errs, field.Invalid(at, text, "must be <= 256 characters long"))
	}
	for i, r := range text {
		if !unicode.IsPrint(r) {
			errs = append(errs, field.Invalid(at, text,
				fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i)))
			break
		}
	}
	return errs
}

func validateParts(ctx context.Context, v *version, d, old *Definition, status bool, at parts) (errs field.ErrorList) {
	schema := schemaOf(v)
	if at.schema != nil && schema != nil {
		if status {
			errs = append(errs, validateRoot(schema, at.schema)...)
		}
		switch {
		case !unchangedSchema(v, old): // the rules of others may cost more than new ones may
			errs = append(errs, validateSchema(ctx, schema, expressionsOf(old), at.schema)...)
		case beginsToDrop(d, old):
			errs = append(errs, structural.Check(at.schema.Upstream(), schema)...)
		}
	}
	if at.subresources != nil {
		errs = append(errs, validateSubresources(v.Subresources, at.subresources)...)
	}
	if at.columns != nil {
		for i := range v.AdditionalPrinterColumns {
			errs = append(errs, validateColumn(&v.AdditionalPrinterColumns[i], at.columns.Index(i))...)
		}
	}
	switch {
	case at.selectable == nil || len(v.SelectableFields) == 0:
	case schema == nil:
		errs = append(errs, field.Invalid(at.selectable, "", at.noSchema))
	default:
		errs = append(errs, validateSelectable(v.SelectableFields, schema, at.selectable)...)
	}
	return errs
}

// rootFields are upstream's names of what the root of a schema may have beside a status
// subresource. By anything else, the status could not be validated alone.
const rootFields = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern " +
	"MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]"

func validateRoot(s *apiextensionsv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	allowed := apiextensionsv1.JSONSchemaProps{
		Description: s.Description, Type: s.Type, Format: s.Format, Title: s.Title,
		Maximum: s.Maximum, ExclusiveMaximum: s.ExclusiveMaximum, Minimum: s.Minimum, ExclusiveMinimum: s.ExclusiveMinimum,
		MaxLength: s.MaxLength, MinLength: s.MinLength, Pattern: s.Pattern,
		MaxItems: s.MaxItems, MinItems: s.MinItems, UniqueItems: s.UniqueItems, MultipleOf: s.MultipleOf,
		Required: s.Required, Items: s.Items, Properties: s.Properties, ExternalDocs: s.ExternalDocs, Example: s.Example,
		XPreserveUnknownFields: s.XPreserveUnknownFields, XValidations: s.XValidations,
	}
	before := s.ID != "" || s.Schema != "" || s.Ref != nil // of the type, in upstream's order
	if !before && s.Type != "" && s.Type != "object" {
		return field.ErrorList{field.Invalid(path.Child("type"), s.Type,
			`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
	}
	if !reflect.DeepEqual(allowed, *s) {
		return field.ErrorList{field.Invalid(path, *s, "only "+rootFields+
			" fields are allowed at the root of the schema if the status subresource is enabled")}
	}
	return nil
}

func validateSchema(ctx context.Context, props *apiextensionsv1.JSONSchemaProps, stored validationrules.Expressions,
	path *field.Path) field.ErrorList {
	if errs := structural.Check(path.Upstream(), props); len(errs) > 0 {
		return errs
	}
	schema, err := structural.Compile(props)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return validationrules.Check(ctx, path.Upstream(), schema, stored)
}

func validateSubresources(s *apiextensionsv1.CustomResourceSubresources, path *field.Path) (errs field.ErrorList) {
	if s == nil || s.Scale == nil {
		return nil
	}
	path = path.Child("scale")
	check := func(name, value, under string) {
		switch {
		case value == "":
			errs = append(errs, field.Required(path.Child(name), ""))
		case !simplePath(value):
			errs = append(errs, field.Invalid(path.Child(name), value, "must be a simple json path starting with ."))
		case under != "" && !strings.HasPrefix(value, under):
			errs = append(errs, field.Invalid(path.Child(name), value, "should be a json path under "+strings.TrimSuffix(under, ".")))
		}
	}
	check("specReplicasPath", s.Scale.SpecReplicasPath, ".spec.")
	check("statusReplicasPath", s.Scale.StatusReplicasPath, ".status.")
	if ptr.Deref(s.Scale.LabelSelectorPath, "") != "" {
		check("labelSelectorPath", *s.Scale.LabelSelectorPath, "")
		if p := *s.Scale.LabelSelectorPath; simplePath(p) && !strings.HasPrefix(p, ".spec.") && !strings.HasPrefix(p, ".status.") {
			errs = append(errs, field.Invalid(path.Child("labelSelectorPath"), p, "should be a json path under either .spec or .status"))
		}
	}
	return errs
}

func simplePath(path string) bool { return strings.HasPrefix(path, ".") }

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

func validateColumn(c *apiextensionsv1.CustomResourceColumnDefinition, path *field.Path) (errs field.ErrorList) {
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	known := "must be one of " + strings.Join(columnTypes, ",")
	if c.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), known))
	} else if !slices.Contains(columnTypes, c.Type) {
		errs = append(errs, field.Invalid(path.Child("type"), c.Type, known))
	}
	if c.Format != "" && !slices.Contains(columnFormats, c.Format) {
		errs = append(errs, field.Invalid(path.Child("format"), c.Format, "must be one of "+strings.Join(columnFormats, ",")))
	}
	if c.JSONPath == "" {
		errs = append(errs, field.Required(path.Child("JSONPath"), ""))
	} else if !strings.HasPrefix(c.JSONPath, ".") {
		errs = append(errs, field.Invalid(path.Child("JSONPath"), c.JSONPath, "must be a simple json path starting with ."))
	}
	return errs
}

// maxSelectable bounds the selectable fields of a version; upstream's.
const maxSelectable = 8

func validateSelectable(selectable []apiextensionsv1.SelectableField, schema *apiextensionsv1.JSONSchemaProps,
	path *field.Path) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, f := range selectable {
		at := path.Index(i).Child("jsonPath")
		if f.JSONPath == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		steps, problem := fieldSteps(f.JSONPath)
		target := schemaAt(schema, steps)
		if problem == "" && target == nil {
			problem = "does not refer to a valid field"
		}
		if problem != "" {
			errs = append(errs, field.Invalid(at, f.JSONPath, "is an invalid path: "+problem))
			continue
		}
		if steps[0] == "metadata" {
			errs = append(errs, field.Invalid(at, f.JSONPath, "must not point to fields in metadata"))
		}
		if !slices.Contains(selectableTypes, target.Type) {
			errs = append(errs, field.Invalid(at, f.JSONPath,
				"must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[f.JSONPath] {
			errs = append(errs, field.Duplicate(at, f.JSONPath))
		}
		seen[f.JSONPath] = true
	}
	if len(seen) > maxSelectable {
		errs = append(errs, field.TooMany(path, len(seen), maxSelectable))
	}
	return errs
}

var selectableTypes = []string{"string", "integer", "boolean"}

// fieldSteps reads a path of plain field names.
func fieldSteps(path string) (steps []string, problem string) {
	switch {
	case strings.Contains(path, "["):
		return nil, "array notation is not allowed"
	case strings.HasSuffix(path, ".") && path != "..":
		return nil, "unexpected end of JSON path"
	}
	rest, ok := strings.CutPrefix(path, ".")
	if !ok {
		first, _, _ := strings.Cut(path, ".")
		return nil, "expected [ or . but got: " + first
	}
	return strings.Split(rest, "."), ""
}

// schemaAt is the schema to which the steps lead; nil if there is none.
func schemaAt(s *apiextensionsv1.JSONSchemaProps, steps []string) *apiextensionsv1.JSONSchemaProps {
	for _, step := range steps {
		if below, ok := s.Properties[step]; ok {
			s = &below
		} else if values := s.AdditionalProperties; values != nil && values.Schema != nil {
			s = values.Schema
		} else {
			return nil
		}
	}
	return s
}
