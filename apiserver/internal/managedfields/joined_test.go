package managedfields

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// TestManyVersions applies to an object by way of each of 40 versions, so that fields are owned in
// all of them. Nothing is lost, and not all pairs of versions are remembered.
func TestManyVersions(t *testing.T) {
	var trackers []*Tracker
	for i := range 40 {
		text := &mergeschema.Schema{Type: "string"}
		trackers = append(trackers, New(Options{
			Kind: schema.GroupVersionKind{Group: "x.example", Version: fmt.Sprint("v", i+1), Kind: "Thing"},
			Schema: func() *mergeschema.Schema {
				return &mergeschema.Schema{Kind: mergeschema.Struct, Fields: map[string]*mergeschema.Schema{
					"apiVersion": text, "kind": text, "metadata": mergeschema.Anything, fmt.Sprint("f", i+1): text,
				}}
			},
			New: func() core.Object { return &unstructured.Unstructured{Object: map[string]any{}} }, Custom: true,
			Clock: clocktesting.NewFakePassiveClock(time.Now()),
		}))
	}
	same := func(in core.Object) (core.Object, error) { return in.DeepCopyObject().(core.Object), nil }
	for i, one := range trackers {
		for _, another := range trackers[i+1:] {
			one.Link(another, same, same)
		}
	}
	var live core.Object
	for i, tracker := range trackers {
		name := fmt.Sprint("f", i+1)
		if live != nil {
			live.GetObjectKind().SetGroupVersionKind(tracker.options.Kind)
		}
		applied := &unstructured.Unstructured{}
		applied.SetName("t")
		applied.SetLabels(map[string]string{name: "set"})
		applied.SetGroupVersionKind(tracker.options.Kind)
		merged, err := tracker.Apply(live, applied, Manager{Name: "m" + name}, false)
		if err != nil {
			t.Fatalf("apply in the version of %s: %v", name, err)
		}
		live = merged
	}
	if have := len(live.GetLabels()); have != len(trackers) {
		t.Errorf("%d labels are left of %d", have, len(trackers))
	}
	for _, tracker := range trackers {
		if tracker.joined != trackers[0].joined {
			t.Fatal("the versions do not share what they remember")
		}
	}
	if have := len(trackers[0].joined.last); have == 0 || have > maxJoined {
		t.Errorf("%d pairs of versions are remembered, and not 1 to %d", have, maxJoined)
	}
}
