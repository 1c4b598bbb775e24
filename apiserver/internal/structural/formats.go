package structural

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// numberFormats are the formats of numbers, by their type.
var numberFormats = map[string][]string{"integer": {"int32", "int64"}, "number": {"float", "double"}}

// UnknownFormats are the formats in schemas that are held against nothing, each
// once: whoever wrote them is to know.
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

// mayBeText tells whether a schema of this type takes text: what stands in an anyOf often
// has none.
func mayBeText(kind string) bool { return kind == "" || kind == "string" }
