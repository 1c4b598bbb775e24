package customresourcedefinition

import (
	"fmt"
	"slices"

	"kctl/apiserver/internal/structural"
)

// warnOfFormats tells of formats that no value is held against, as far as they
// are new.
func warnOfFormats(d, old *Definition) (out []string) {
	known := formatsOf(old)
	for _, format := range formatsOf(d) {
		if !slices.Contains(known, format) {
			out = append(out, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	return out
}

func formatsOf(d *Definition) (out []string) {
	if d == nil {
		return nil
	}
	for _, version := range d.Spec.Versions {
		if version.Schema == nil {
			continue
		}
		for _, format := range structural.UnknownFormats(version.Schema.OpenAPIV3Schema) {
			if !slices.Contains(out, format) {
				out = append(out, format)
			}
		}
	}
	return out
}
