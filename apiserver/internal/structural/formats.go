package structural

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// numberFormats are the formats of numbers, by their type.
var numberFormats = map[string][]string{"integer": {"int32", "int64"}, "number": {"float", "double"}}

// UnknownFormats are the formats in a schema that are held against nothing, each
// once: whoever wrote them is to know.
func UnknownFormats(p *apiextensionsv1.JSONSchemaProps) (out []string) {
	if p == nil {
		return nil
	}
	add := func(formats ...string) {
		for _, format := range formats {
			if !slices.Contains(out, format) {
				out = append(out, format)
			}
		}
	}
	if p.Format != "" && !knownFormat(p.Type, p.Format) {
		add(p.Format)
	}
	each(nil, p, func(_ *field.Path, below *apiextensionsv1.JSONSchemaProps, _ level) { add(UnknownFormats(below)...) })
	for _, some := range combinations(nil, p) {
		add(UnknownFormats(some.props)...)
	}
	return out
}

func knownFormat(kind, format string) bool {
	if formats, ok := numberFormats[kind]; ok {
		return slices.Contains(formats, format)
	}
	return kind == "string" && strfmt.Default.ContainsName(format)
}
