package handlers

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// TestManagedFieldsAfterAdmission: managedFields that a webhook made invalid
// are restored, and the client is warned in upstream's words; other changes are
// kept.
func TestManagedFieldsAfterAdmission(t *testing.T) {
	entry := func(operation metav1.ManagedFieldsOperationType) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")},
		}}
	}
	for operation, want := range map[metav1.ManagedFieldsOperationType]struct {
		kept    metav1.ManagedFieldsOperationType
		warning string
	}{
		metav1.ManagedFieldsOperationApply: {metav1.ManagedFieldsOperationApply, ""},
		"Foo": {metav1.ManagedFieldsOperationUpdate,
			`.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: operation must be ` + "`Apply` or `Update`"},
	} {
		warnings := &request.Warnings{}
		ctx := request.With(t.Context(), &request.Arrival{Warnings: warnings})
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: entry(metav1.ManagedFieldsOperationUpdate)}}
		admit := guardManagedFields(registry.Admission{Mutate: func(_ context.Context, obj, _ core.Object) error {
			obj.SetManagedFields(entry(operation))
			return nil
		}})
		if err := admit.Mutate(ctx, obj, nil); err != nil {
			t.Fatal(err)
		}
		if kept := obj.ManagedFields[0].Operation; kept != want.kept || strings.Join(warnings.All(), "") != want.warning {
			t.Errorf("%s: kept %s, warned %q", operation, kept, warnings.All())
		}
	}
}
