package managedfields

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
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

// TestApplyToManyFields: the cost also depends on the fields of the object, whoever owns them.
func TestApplyToManyFields(t *testing.T) {
	for n, ok := range map[int]bool{1_000: true, 60_001: false} {
		old := newPod()
		old.Annotations = map[string]string{}
		for i := range n {
			old.Annotations[fmt.Sprint("k", i)] = "v"
		}
		applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		_, err := podTracker(t).Apply(old, applied, Manager{Name: "m"}, false)
		if refused := apierrors.IsRequestEntityTooLargeError(err); refused == ok || refused && !strings.Contains(err.Error(), "the object has too many fields") {
			t.Errorf("%d annotations: %v", n, err)
		}
	}
}

// TestUpdateOfManyFields: an update that changes managedFields, too, costs as much as an apply,
// but is not refused: nobody owns the fields afterwards.
func TestUpdateOfManyFields(t *testing.T) {
	for n, tracked := range map[int]bool{1_000: true, 60_001: false} {
		old := newPod()
		old.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:nodeName":{}}}`)},
		}}
		obj := old.DeepCopy()
		obj.ManagedFields[0].Manager = "n"
		obj.Annotations = map[string]string{}
		for i := range n {
			obj.Annotations[fmt.Sprint("k", i)] = "v"
		}
		before, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		if podTracker(t).Update(obj, old, before, Manager{Name: "u"}); (len(obj.ManagedFields) > 0) != tracked {
			t.Errorf("%d annotations: %d managers", n, len(obj.ManagedFields))
		}
	}
}

// TestDeepApply: the cost also depends on how deeply fields are nested, those of the object
// and those that the manager is said to own already among them.
func TestDeepApply(t *testing.T) {
	tracker := New(Options{
		Kind: schema.GroupVersionKind{Group: "a.io", Version: "v1", Kind: "A"}, Clock: clocktesting.NewFakePassiveClock(time.Now()),
		Schema: func() *mergeschema.Schema { return mergeschema.Anything }, New: func() core.Object { return &unstructured.Unstructured{} },
	})
	object := func(spec any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a.io/v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "spec": spec}}
	}
	deep := func(levels int) (value any) {
		for value = "v"; levels > 0; levels-- {
			value = map[string]any{"a": value}
		}
		return value
	}
	owned := func(levels int) core.Object {
		out := object("v")
		out.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "a.io/v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat(`{"f:\"{":`, levels) + "{}" + strings.Repeat("}", levels))},
		}})
		return out
	}
	holds := func(levels int) core.Object { return object(deep(levels)) }
	for name, test := range map[string]struct {
		old     core.Object
		applied any
		by      string
		ok      bool
	}{
		"deep":            {nil, deep(1_000), "m", true},
		"too deep":        {nil, deep(3_000), "m", false},
		"owned":           {owned(1_000), "v", "m", true},
		"owned too deep":  {owned(3_000), "v", "m", false},
		"owned by others": {owned(3_000), "v", "n", true},
		"to deep":         {holds(1_000), "v", "m", true},
		"to too deep":     {holds(3_000), "v", "m", false},
	} {
		_, err := tracker.Apply(test.old, object(test.applied), Manager{Name: test.by}, true)
		if refused := apierrors.IsRequestEntityTooLargeError(err); refused == test.ok || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
