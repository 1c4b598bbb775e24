package managedfields

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestApplySteps: the cost of an apply depends on how many fields and elements
// have owners of their own side by side, not on what is replaced as a whole.
func TestApplySteps(t *testing.T) {
	fields := func(n int) map[string]any {
		out := map[string]any{}
		for i := range n {
			out[fmt.Sprint("k", i)] = "v"
		}
		return out
	}
	elements := func(n int) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = fmt.Sprint("e", i)
		}
		return out
	}
	for name, test := range map[string]struct {
		part  string // of a pod
		value any
		ok    bool
	}{
		"annotations":          {"metadata.annotations", fields(20_000), true},
		"too many annotations": {"metadata.annotations", fields(60_001), false},
		"finalizers":           {"metadata.finalizers", elements(5_000), true},
		"too many finalizers":  {"metadata.finalizers", elements(20_001), false},
		"many in an element":   {"spec.containers", []any{map[string]any{"name": "c", "resources": map[string]any{"limits": fields(60_001)}}}, false},
		"arguments":            {"spec.containers", []any{map[string]any{"name": "c", "args": elements(100_000)}}, true},
		"a selector":           {"spec.nodeSelector", fields(100_000), true},
		"what nobody knows":    {"spec.nothing", fields(100_000), true},
	} {
		applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		if err := unstructured.SetNestedField(applied.Object, test.value, strings.Split(test.part, ".")...); err != nil {
			t.Fatal(err)
		}
		_, err := podTracker(t).Apply(nil, applied, Manager{Name: "m"}, false)
		if refused := apierrors.IsRequestEntityTooLargeError(err); refused == test.ok || refused && !strings.Contains(err.Error(), "at most 3600000000") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
