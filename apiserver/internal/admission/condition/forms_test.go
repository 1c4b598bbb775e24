package condition

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHugeQuantitiesOfPlugins: who changes an object can't give it quantities that take hours
// to compute, as clients can't.
func TestHugeQuantitiesOfPlugins(t *testing.T) {
	for pods, ok := range map[string]bool{"1e9": true, "1e99999999": false} {
		err := decode([]byte(`{"spec":{"hard":{"pods":"`+pods+`"}}}`), &corev1.ResourceQuota{}, false)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%s: %v", pods, err)
		}
	}
}
