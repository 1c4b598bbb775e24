package handlers

import (
	"bytes"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestOwnershipThatIsNoJSON: who owns which fields is dropped where it can't be read.
func TestOwnershipThatIsNoJSON(t *testing.T) {
	two := &metav1.FieldsV1{}
	two.SetRawBytes([]byte(`{"f:data":{}}{}`))
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsType: "FieldsV1", FieldsV1: two}}}}
	sent.SetGroupVersionKind(kind)
	var body bytes.Buffer
	if err := protobufObjects.Encode(sent, &body); err != nil {
		t.Fatal(err)
	}
	read := &corev1.ConfigMap{}
	if err := decodeProtobuf(body.Bytes(), read, kind); err != nil || len(read.ManagedFields) > 0 {
		t.Errorf("%v is left: %v", read.ManagedFields, err)
	}
}
