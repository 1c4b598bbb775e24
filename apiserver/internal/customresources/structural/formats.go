package structural

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// numberFormats are the formats of numbers, by their type.
var numberFormats = map[string][]string{"integer": {"int32", "int64"}, "number": {"float", "double"}}

// UnknownFormats are the formats in a schema that are not checked, each once,
// for a warning to its author.
func UnknownFormats(schemas ...*apiextensionsv1.JSONSchemaProps) (out []string) {
	var visit func(p *apiextensionsv1.JSONSchemaProps)
	visit = func(p *apiextensionsv1.JSONSchemaProps) {
		if p == nil {
			return
		}
		if p.Format != "" && !knownFormat(p.Type, p.Format) && !slices.Contains(out, p.Format) {
			out = append(out, p.Format)
		}
		each(nil, p, func(_ *field.Path, below *apiextensionsv1.JSONSchemaProps, _ level) { visit(below) })
		for _, some := range combinations(nil, p) {
			visit(some.props)
		}
	}
	for _, schema := range schemas {
		visit(schema)
	}
	return out
}

func knownFormat(kind, format string) bool {
	if formats, ok := numberFormats[kind]; ok {
		return slices.Contains(formats, format)
	}
	return mayBeText(kind) && strfmt.Default.ContainsName(format)
}

// mayBeText reports whether a schema with this type accepts strings: members of an anyOf
// often have no type.
func mayBeText(kind string) bool { return kind == "" || kind == "string" }
