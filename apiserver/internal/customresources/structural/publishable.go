package structural

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Publishable reports whether clients can be told of a stored schema, and objects merged by it: it is
// structural, and has no types that there are not, which apiextensions.k8s.io/v1beta1 accepted.
func Publishable(root *apiextensionsv1.JSONSchemaProps) bool {
	return !hasUnknownTypes(root) && len(Violations(nil, root)) == 0
}

func hasUnknownTypes(p *apiextensionsv1.JSONSchemaProps) bool {
	found := p.Type != "" && !slices.Contains(types, p.Type)
	each(nil, p, func(_ *field.Path, below *apiextensionsv1.JSONSchemaProps, _ level) {
		found = found || hasUnknownTypes(below)
	})
	return found || slices.ContainsFunc(combinations(nil, p), func(some combination) bool { return hasUnknownTypes(some.props) })
}
