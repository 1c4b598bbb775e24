package admission

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestReplacedMetadata: a webhook may leave out an object's metadata, but not make it something
// else. That is its fault, not the client's; in an update, it is as if it had been left out.
func TestReplacedMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		content        map[string]any
		create, update int32
	}{
		"none":      {map[string]any{}, 0, 0},
		"empty":     {map[string]any{"metadata": map[string]any{}}, 0, 0},
		"same":      {map[string]any{"metadata": map[string]any{"namespace": "n"}}, 0, 0},
		"elsewhere": {map[string]any{"metadata": map[string]any{"namespace": "m"}}, 400, 400},
		"text":      {map[string]any{"metadata": "text"}, 500, 0},
		"null":      {map[string]any{"metadata": nil}, 500, 0},
	} {
		for operation, want := range map[Operation]int32{Create: c.create, Update: c.update} {
			a := &Attributes{Operation: operation, Object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "n"}}}}
			err := a.Replace(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.content)})
			if codeOf(err) != want || a.Object.GetNamespace() != "n" {
				t.Errorf("%s, %s: %v, namespace %q", operation, name, err, a.Object.GetNamespace())
			}
		}
	}
}

// codeOf is the code of a status error, 0 for none.
func codeOf(err error) int32 {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Code
	}
	return 0
}
