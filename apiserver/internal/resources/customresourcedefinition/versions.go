package customresourcedefinition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/rules"
	"kctl/apiserver/internal/structural"
)

// version is one version of a definition.
type version = apiextensionsv1.CustomResourceDefinitionVersion

// validateVersions validates the list of versions.
func validateVersions(d *Definition, spec *field.Path) (errs field.ErrorList) {
	path := spec.Child("versions")
	names, storage := map[string]bool{}, 0
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		names[v.Name] = true
		if v.Storage {
			storage++
		}
		errs = append(errs, validateNameAndDeprecation(v, path.Index(i))...)
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

// validateContents validates the schemas, columns and subresources of all versions.
func validateContents(ctx context.Context, d, old *Definition, spec *field.Path) (errs field.ErrorList) {
	path := spec.Child("versions")
	together := commonToVersions(d.Spec.Versions)
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if old != nil && unchangedVersion(v, old) {
			continue // stored before the rule existed
		}
		at := versionPaths{schema: path.Index(i).Child("schema", "openAPIV3Schema"), rest: path.Index(i)}
		if together.schema {
			at.schema = spec.Child("validation", "openAPIV3Schema")
		}
		at.subresources, at.columns, at.selectable = at.rest.Child("subresources"), at.rest.Child("additionalPrinterColumns"), at.rest.Child("selectableFields")
		if together.subresources {
			at.subresources = spec.Child("subresources")
		}
		if together.columns {
			at.columns = spec.Child("additionalPrinterColumns")
		}
		if together.selectable {
			at.selectable = spec.Child("selectableFields")
		}
		errs = append(errs, validateVersion(ctx, v, path.Index(i), at, i == 0)...)
	}
	return errs
}

// versionPaths are the paths of a version's parts in errors. If all versions have the
// same, upstream uses the path from before there were versions.
type versionPaths struct{ schema, subresources, columns, selectable, rest *field.Path }

// commonToVersions is what all versions have in common.
func commonToVersions(versions []version) (same struct{ schema, subresources, columns, selectable bool }) {
	same.schema, same.subresources, same.columns, same.selectable = true, true, true, true
	for i := range versions {
		a, b := &versions[0], &versions[i]
		same.schema = same.schema && apiequality.Semantic.DeepEqual(a.Schema, b.Schema)
		same.subresources = same.subresources && apiequality.Semantic.DeepEqual(a.Subresources, b.Subresources)
		same.columns = same.columns && apiequality.Semantic.DeepEqual(a.AdditionalPrinterColumns, b.AdditionalPrinterColumns)
		same.selectable = same.selectable && apiequality.Semantic.DeepEqual(a.SelectableFields, b.SelectableFields)
	}
	return same
}

func unchangedVersion(v *version, old *Definition) bool {
	return slices.ContainsFunc(old.Spec.Versions, func(before version) bool {
		return before.Name == v.Name && apiequality.Semantic.DeepEqual(before, *v)
	})
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
			errs = append(errs, field.Invalid(at, text, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i)))
			break
		}
	}
	return errs
}

func validateVersion(ctx context.Context, v *version, path *field.Path, at versionPaths, first bool) (errs field.ErrorList) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return field.ErrorList{field.Required(path.Child("schema", "openAPIV3Schema"), "")}
	}
	// What all versions have in common is checked once.
	if first || at.schema.String() == path.Child("schema", "openAPIV3Schema").String() {
		errs = append(errs, validateSchema(ctx, v.Schema.OpenAPIV3Schema, at.schema)...)
	}
	if first || at.subresources.String() == path.Child("subresources").String() {
		errs = append(errs, validateSubresources(v.Subresources, at.subresources)...)
	}
	if first || at.columns.String() == path.Child("additionalPrinterColumns").String() {
		for i := range v.AdditionalPrinterColumns {
			errs = append(errs, validateColumn(&v.AdditionalPrinterColumns[i], at.columns.Index(i))...)
		}
	}
	if first || at.selectable.String() == path.Child("selectableFields").String() {
		errs = append(errs, validateSelectable(v, at.selectable)...)
	}
	return errs
}

func validateSchema(ctx context.Context, props *apiextensionsv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	if errs := structural.Check(path.Upstream(), props); len(errs) > 0 {
		return errs
	}
	schema, err := structural.Compile(props)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return rules.Check(ctx, path.Upstream(), schema)
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
	if s.Scale.LabelSelectorPath != nil && *s.Scale.LabelSelectorPath != "" {
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

func validateSelectable(v *version, path *field.Path) (errs field.ErrorList) {
	seen, good := map[string]bool{}, 0
	for i, f := range v.SelectableFields {
		at := path.Index(i).Child("jsonPath")
		steps, problem := fieldSteps(f.JSONPath)
		switch {
		case f.JSONPath == "":
			errs = append(errs, field.Required(at, ""))
		case problem != "":
			errs = append(errs, field.Invalid(at, f.JSONPath, "is an invalid path: "+problem))
		case seen[f.JSONPath]:
			errs = append(errs, field.Duplicate(at, f.JSONPath))
		default:
			if problem := unselectableReason(v.Schema.OpenAPIV3Schema, steps); problem != "" {
				errs = append(errs, field.Invalid(at, f.JSONPath, problem))
			} else {
				good++
			}
		}
		seen[f.JSONPath] = true
	}
	if good > maxSelectable {
		errs = append(errs, field.TooMany(path, good, maxSelectable))
	}
	return errs
}

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

// unselectableReason returns why the field that the steps lead to can't be selectable; "" if it
// can.
func unselectableReason(s *apiextensionsv1.JSONSchemaProps, steps []string) (problem string) {
	const nowhere = "is an invalid path: does not refer to a valid field"
	if steps[0] == "metadata" {
		return nowhere
	}
	for _, step := range steps {
		if below, ok := s.Properties[step]; ok {
			s = &below
		} else if values := s.AdditionalProperties; values != nil && values.Schema != nil {
			s = values.Schema
		} else {
			return nowhere
		}
	}
	if !slices.Contains([]string{"string", "integer", "boolean"}, s.Type) {
		return "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
	}
	return ""
}
