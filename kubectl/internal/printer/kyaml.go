package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml/kyaml"
)

// KYAML prints objects as KYAML, the YAML in braces and quotes that reads the same
// whatever its indentation (KEP-5295).
type KYAML struct{}

// Print writes the object, behind the "---" that every document of KYAML has.
func (KYAML) Print(w io.Writer, obj runtime.Object) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding KYAML: %w", err)
	}
	if err := (&kyaml.Encoder{}).FromYAML(bytes.NewReader(data), w); err != nil {
		return fmt.Errorf("encoding KYAML: %w", err)
	}
	return nil
}
