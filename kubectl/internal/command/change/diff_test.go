package change

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/threeway"
)

// What diff --prune says would go shows no value of a secret, not even as it was
// applied.
func TestHideSecrets(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Secret", "data": map[string]any{"key": "S0VZ"},
		"metadata": map[string]any{"name": "door", "annotations": map[string]any{threeway.LastApplied: `{"data":{"key":"S0VZ"}}`}},
	}}
	hideSecrets(secret)
	if text := fmt.Sprint(secret.Object); strings.Contains(text, "S0VZ") || !strings.Contains(text, "key:***") {
		t.Error(text)
	}
}
