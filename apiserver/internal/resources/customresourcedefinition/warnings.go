package customresourcedefinition

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"kctl/apiserver/internal/customresources/structural"
)

// formatWarnings warns about new formats that are not checked.
func formatWarnings(d, old *Definition) (out []string) {
	known := formatsOf(old)
	for _, format := range formatsOf(d) {
		if !slices.Contains(known, format) {
			out = append(out, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	return out
}

func formatsOf(d *Definition) []string {
	if d == nil {
		return nil
	}
	var schemas []*apiextensionsv1.JSONSchemaProps
	for _, version := range d.Spec.Versions {
		if version.Schema != nil {
			schemas = append(schemas, version.Schema.OpenAPIV3Schema)
		}
	}
	return structural.UnknownFormats(schemas...)
}
