package admission

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestReplacedMetadata: a webhook may leave out an object's metadata, but not make it something
// else. That is its fault, not the client's.
func TestReplacedMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		content map[string]any
		code    int32
	}{
		"none":      {map[string]any{}, 0},
		"empty":     {map[string]any{"metadata": map[string]any{}}, 0},
		"same":      {map[string]any{"metadata": map[string]any{"namespace": "n"}}, 0},
		"elsewhere": {map[string]any{"metadata": map[string]any{"namespace": "m"}}, 400},
		"text":      {map[string]any{"metadata": "text"}, 500},
		"null":      {map[string]any{"metadata": nil}, 500},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "n"}}}
		a := &Attributes{Object: object}
		err := a.Replace(&unstructured.Unstructured{Object: c.content})
		var code int32
		if status, ok := err.(apierrors.APIStatus); ok {
			code = status.Status().Code
		}
		if code != c.code || object.GetNamespace() != "n" {
			t.Errorf("%s: %v, namespace %q", name, err, object.GetNamespace())
		}
	}
}
