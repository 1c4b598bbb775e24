package bodylimit

import (
	"sigs.k8s.io/yaml"

	"kctl/proto/yamlsize"
)

// Parts refuses a YAML body with more objects than JSON may have. An object
// takes two bytes, so only large bodies need to be read.
func Parts(body []byte) error {
	if len(body) < 2*maxParts {
		return nil
	}
	text, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil // decoding it reports what is wrong
	}
	return JSON(text)
}

// YAMLToJSON is the body as JSON, unless YAML refuses it.
func YAMLToJSON(body []byte, limit int64) ([]byte, error) {
	if err := yamlsize.Check(body, limit); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(body)
}
