package events

import (
	"cmp"
	"fmt"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
)

// referenceTo names obj as an event's involvedObject. An ObjectReference stands
// for itself.
func referenceTo(obj runtime.Object) (*core.ObjectReference, error) {
	if ref, ok := obj.(*core.ObjectReference); ok {
		out := *ref
		return &out, nil
	}
	meta, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", obj)
	}
	// Decoded list items often carry no kind of their own.
	kinds, _, err := core.Scheme.ObjectKinds(obj)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", obj, err)
	}
	return &core.ObjectReference{
		APIVersion:      kinds[0].GroupVersion().String(),
		Kind:            kinds[0].Kind,
		Namespace:       meta.GetNamespace(),
		Name:            meta.GetName(),
		UID:             meta.GetUID(),
		ResourceVersion: meta.GetResourceVersion(),
	}, nil
}

// referenceTo is that of a part of obj; nil, which is logged, if obj is none of the API.
func (r *Recorder) referenceTo(obj runtime.Object, fieldPath, reason string) *core.ObjectReference {
	ref, err := referenceTo(obj)
	if err != nil {
		r.logger.Error("event is about no API object", zap.String("reason", reason), zap.Error(err))
		return nil
	}
	ref.FieldPath = cmp.Or(fieldPath, ref.FieldPath)
	return ref
}
