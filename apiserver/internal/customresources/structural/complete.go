package structural

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// known refuses fields in a combination that the surrounding schema lacks, since
// their type would be unknown. Upstream does not require this of combinations
// below the root.
func (c *checker) known(path *field.Path, p *apiextensionsv1.JSONSchemaProps, saidAt *field.Path, said *apiextensionsv1.JSONSchemaProps) {
	missing := func(path, saidAt *field.Path) {
		c.add(field.Required(path, "because it is defined in "+saidAt.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(said.Properties)) {
		below, property := said.Properties[name], path.Child("properties").Key(name)
		at := saidAt.Child("properties").Key(name)
		if known, ok := p.Properties[name]; ok {
			c.known(property, &known, at, &below)
		} else {
			missing(property, at)
		}
	}
	if said.Items != nil && said.Items.Schema != nil {
		if p.Items != nil && p.Items.Schema != nil {
			c.known(path.Child("items"), p.Items.Schema, saidAt.Child("items"), said.Items.Schema)
		} else {
			missing(path.Child("items"), saidAt.Child("items"))
		}
	}
	for _, some := range combinations(saidAt, said) {
		c.known(path, p, some.path, some.props)
	}
}
