package admission

import (
	"bytes"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
)

// Rounds remembers, between the two rounds of mutating plugins, what those that
// act on users' behalf (webhooks, policies) have seen and changed.
type Rounds struct {
	// Second is true in the second round, which happens only after RequestSecond.
	Second bool

	secondWanted bool
	outputs      map[string][]byte
}

// RequestSecond asks for the second round: a plugin has changed the object on a
// user's behalf.
func (r *Rounds) RequestSecond() { r.secondWanted = true }

// RecordOutput stores the object as a plugin that wants to be called again left
// it.
func (r *Rounds) RecordOutput(who string, object []byte) {
	if r.outputs == nil {
		r.outputs = map[string][]byte{}
	}
	r.outputs[who] = object
}

// ChangedSince reports whether the object has changed since such a plugin left it.
func (r *Rounds) ChangedSince(who string, object []byte) bool {
	left, ok := r.outputs[who]
	return ok && !bytes.Equal(left, object)
}

// Replace makes obj, which is of the same type, the object being admitted.
// Holders of the old one see the new content.
func (a *Attributes) Replace(obj core.Object) error {
	if free, ok := obj.(runtime.Unstructured); ok && !hasMetadata(free.UnstructuredContent()) {
		if a.Operation == Create {
			return apierrors.NewInternalError(errors.New("system metadata was not initialized"))
		}
		delete(free.UnstructuredContent(), "metadata") // which has no resourceVersion: the update is refused as without one
	}
	if obj.GetNamespace() == "" { // if empty, the request's
		obj.SetNamespace(a.Object.GetNamespace())
	}
	if obj.GetNamespace() != a.Object.GetNamespace() {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if a.Default != nil {
		a.Default(obj)
	}
	reflect.ValueOf(a.Object).Elem().Set(reflect.ValueOf(obj).Elem())
	return nil
}

// ReplaceConnectOptions makes options, which are of the same type, those of the
// connection. Holders of the old ones see the new content.
func (a *Attributes) ReplaceConnectOptions(options runtime.Object) {
	reflect.ValueOf(a.ConnectOptions).Elem().Set(reflect.ValueOf(options).Elem())
}

// hasMetadata reports whether metadata can be written into the object: it has some, or none yet.
func hasMetadata(content map[string]any) bool {
	meta, given := content["metadata"]
	_, isObject := meta.(map[string]any)
	return isObject || !given
}
