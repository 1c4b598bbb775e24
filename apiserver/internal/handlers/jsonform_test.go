package handlers

import (
	"bytes"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestProtobufThatIsNoJSON(t *testing.T) {
	late := time.Date(20_000, time.January, 1, 0, 0, 0, 0, time.UTC)
	managed := metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: late}}}}
	revisions, leases := appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), coordinationv1.SchemeGroupVersion.WithKind("Lease")
	revision := func(data string) runtime.Object {
		return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(data)}}
	}
	for name, test := range map[string]struct {
		kind    schema.GroupVersionKind
		object  runtime.Object
		refused bool
	}{
		"half an object":          {revisions, revision("{"), true},
		"a word":                  {revisions, revision("z"), true},
		"an object":               {revisions, revision("{}"), false},
		"a late renewal":          {leases, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: late}}}, true},
		"a renewal":               {leases, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: late.AddDate(-10_001, 0, 0)}}}, false},
		"a renewal before Christ": {leases, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: late.AddDate(-20_010, 0, 0)}}}, true},
		"a name that begins so":   {corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "20000-01-01"}}, false},
		"a manager after its end": {corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{ObjectMeta: managed}, true},
	} {
		test.object.GetObjectKind().SetGroupVersionKind(test.kind)
		var body bytes.Buffer
		if err := protobufObjects.Encode(test.object, &body); err != nil {
			t.Fatal(name, err)
		}
		into := test.object.DeepCopyObject()
		if err := decodeProtobuf(body.Bytes(), into, test.kind); test.refused && !apierrors.IsBadRequest(err) || !test.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
