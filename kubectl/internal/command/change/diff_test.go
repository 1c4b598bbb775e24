package change

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/threeway"
	"kctl/proto/core"
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

// diff masks what secrets hold, and nothing else, unless it is told to show them.
func TestWhatDiffMasks(t *testing.T) {
	secret := lookup.Target{Resource: discover.Resource{Resource: core.Secrets}}
	pod := lookup.Target{Resource: discover.Resource{Resource: core.Pods}}
	if d := (&diffOptions{}); !d.masks(secret) || d.masks(pod) {
		t.Errorf("by default: a secret %t, a pod %t", d.masks(secret), d.masks(pod))
	}
	if d := (&diffOptions{secrets: true}); d.masks(secret) {
		t.Error("with --show-secrets, a secret is masked")
	}
}
