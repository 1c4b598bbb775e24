package validationrules

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Expressions are the texts of expressions.
type Expressions map[string]bool

// Add adds those of a schema, which may be nil.
func (e Expressions) Add(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	for _, rule := range s.XValidations {
		e[rule.Rule], e[rule.MessageExpression] = true, true
	}
	for _, property := range s.Properties {
		e.Add(&property)
	}
	if s.Items != nil {
		e.Add(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		e.Add(s.AdditionalProperties.Schema)
	}
}

func (e Expressions) has(expression string) bool { return e[expression] }
