package admission

import (
	"bytes"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/core"
)

// Rounds remembers between the two rounds of mutating plugins what those that
// act in the users' name (webhooks, policies) have seen and made.
type Rounds struct {
	// Second is true in the second round, which there is only after Changed.
	Second bool

	wanted  bool
	outputs map[string][]byte
}

// Changed asks for the second round: a plugin has changed the object as a user
// told it to.
func (r *Rounds) Changed() { r.wanted = true }

// Left remembers in what form whoever asks to be called again left the object.
func (r *Rounds) Left(who string, object []byte) {
	if r.outputs == nil {
		r.outputs = map[string][]byte{}
	}
	r.outputs[who] = object
}

// Again tells whether who left the object in another form than it has now.
func (r *Rounds) Again(who string, object []byte) bool {
	left, ok := r.outputs[who]
	return ok && !bytes.Equal(left, object)
}

// Replace makes obj, which is of the same type, the object that is admitted.
// What holds the old one sees the new content.
func (a *Attributes) Replace(obj core.Object) error {
	if obj.GetNamespace() == "" { // left out, it is the request's
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
