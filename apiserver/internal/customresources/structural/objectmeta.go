package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// metaPlace is the position of a schema with regard to the kind, version and metadata of objects.
type metaPlace struct {
	inside bool
	// undefaulted says where it is that there can be no defaults, "" if there can.
	undefaulted string
}

// objectMeta refuses, inside the kind, version and metadata of objects, other objects, and defaults
// where the server sets what is missing or where it is not known for which fields they are.
func (c *checker) objectMeta(path *field.Path, p *apiextensionsv1.JSONSchemaProps, root bool, at metaPlace) {
	if at.inside && p.XEmbeddedResource {
		c.add(field.Forbidden(path.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
	if at.undefaulted != "" && p.Default != nil {
		c.add(field.Forbidden(path.Child("default"), "must not be set "+at.undefaulted))
	}
	each(path, p, func(path *field.Path, below *apiextensionsv1.JSONSchemaProps, l level) {
		c.objectMeta(path, below, false, at.below(l, root, root || p.XEmbeddedResource))
	})
	for _, some := range combinations(path, p) {
		c.objectMeta(some.path, some.props, false, at)
	}
}

// below is the place of a part; whole: of an object, be it the root or embedded.
func (at metaPlace) below(l level, root, whole bool) metaPlace {
	switch {
	case whole && objectFields[l.name]:
		at.inside = true
		if root {
			at.undefaulted = "in top-level " + l.name
		}
	case at.inside && l.value:
		at.undefaulted = "inside additionalProperties applying to object metadata"
	}
	return at
}
