package managedfields

import (
	"strings"
	"testing"
)

// TestMergeOfAHugeQuantity: policies can't give objects what takes hours to compute.
func TestMergeOfAHugeQuantity(t *testing.T) {
	for memory, ok := range map[string]bool{"1e9": true, "1e99999999": false} {
		_, err := podTracker(t).Merge(newPod(), map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"overhead": map[string]any{"memory": memory}},
		})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%s: %v", memory, err)
		}
	}
}
