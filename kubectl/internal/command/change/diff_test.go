package change

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/threeway"
)

// diff --prune shows no values of a secret that would be pruned, not even those
// in the last-applied annotation.
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
