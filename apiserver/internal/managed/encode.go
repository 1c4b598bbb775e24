package managed

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

func marshal(obj runtime.Object) ([]byte, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return text, nil
}

func decode(text []byte, into runtime.Object) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}
