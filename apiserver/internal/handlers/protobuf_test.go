package handlers

import (
	"bytes"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestProtobufThatIsNoJSON: a field of any content must be what can be stored.
func TestProtobufThatIsNoJSON(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	for data, refused := range map[string]bool{"{": true, "z": true, "{}": false} {
		revision := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(data)}}
		revision.SetGroupVersionKind(kind)
		var body bytes.Buffer
		if err := protobufObjects.Encode(revision, &body); err != nil {
			t.Fatal(data, err)
		}
		if err := decodeProtobuf(body.Bytes(), &appsv1.ControllerRevision{}, kind); refused && !apierrors.IsBadRequest(err) || !refused && err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}
