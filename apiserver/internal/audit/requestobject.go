package audit

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/bodylimit"
	"kctl/apiserver/internal/scheme"
)

// RequestObject records the request's object as the server decoded it, and
// fills the event's objectRef from it. completed returns a copy with kind and
// defaults; it is called only if the policy keeps the object.
func RequestObject(ctx context.Context, obj runtime.Object, completed func() runtime.Object) {
	r := recordOf(ctx)
	if r == nil {
		return
	}
	if named, ok := obj.(metav1.Object); ok {
		r.refer(func(ref *ObjectReference) {
			fill(ref, named.GetNamespace(), named.GetName(), named.GetUID(), named.GetResourceVersion())
		})
	}
	if !r.verdict.level.AtLeast(Request) {
		return
	}
	whole := completed()
	if named, ok := whole.(metav1.Object); ok && r.verdict.omitManagedFields {
		named.SetManagedFields(nil)
	}
	if text, err := scheme.Encode(whole); err == nil {
		r.requested(text)
	}
}

// RequestPatch records a request's patch, which is JSON, or YAML that is
// converted to JSON.
func RequestPatch(ctx context.Context, patch []byte) {
	r := recordOf(ctx)
	if r == nil || !r.verdict.level.AtLeast(Request) {
		return
	}
	text := patch
	if !json.Valid(text) {
		var err error
		if text, err = bodylimit.YAMLToJSON(patch, maxBody); err != nil {
			return
		}
	}
	r.requested(text)
}

// requested records the request's body in one line.
func (r *Record) requested(text []byte) {
	var line bytes.Buffer
	if len(text) > maxBody || json.Compact(&line, text) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.event.RequestObject = line.Bytes()
	}
}
