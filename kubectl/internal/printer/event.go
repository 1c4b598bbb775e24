package printer

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Event is an object of a watch with what happened to it: what printers get for
// --output-watch-events. As in kubectl, Name prints only the object, JSON uses
// one line, and templates find .type and .object.
type Event struct {
	Type   string
	Object *unstructured.Unstructured
}

// GetObjectKind implements runtime.Object.
func (e *Event) GetObjectKind() schema.ObjectKind { return e.Object.GetObjectKind() }

// DeepCopyObject implements runtime.Object.
func (e *Event) DeepCopyObject() runtime.Object { return &Event{e.Type, e.Object.DeepCopy()} }

// MarshalJSON implements json.Marshaler.
func (e *Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type   string                     `json:"type"`
		Object *unstructured.Unstructured `json:"object"`
	}{e.Type, e.Object})
}
