package handlers

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// maxManagerName is the maximum length, in bytes, of a manager's name from a
// user agent; upstream's.
const maxManagerName = 128

// managerOf is the name of the field manager: fieldManager, or otherwise the
// program's name at the beginning of the user agent (Kubernetes docs,
// "Server-Side Apply", "Field managers").
func managerOf(fieldManager, userAgent string) string {
	if fieldManager != "" {
		return fieldManager
	}
	name, _, _ := strings.Cut(userAgent, "/")
	var out strings.Builder
	for _, r := range name {
		if !unicode.IsPrint(r) {
			continue
		}
		if out.Len()+len(string(r)) > maxManagerName {
			break
		}
		out.WriteRune(r)
	}
	if out.Len() == 0 {
		return "unknown"
	}
	return out.String()
}

func (c *call) fieldManager(fieldManager string) managedfields.Manager {
	return managedfields.Manager{Name: managerOf(fieldManager, c.gin.Request.UserAgent()), Subresource: c.subresource}
}

// trackFields makes the field manager the owner of the changed fields.
func (c *call) trackFields(admit registry.Admission, fieldManager string) registry.Admission {
	if c.tracker == nil {
		return admit
	}
	by := c.fieldManager(fieldManager)
	admit.MayDropManagedFields = true
	admit.TrackFields = func(obj, old core.Object, before []byte) { c.tracker.Update(obj, old, before, by) }
	return guardManagedFields(admit)
}

// guardManagedFields undoes a change of managedFields by admission that makes
// them unreadable, and warns about it.
func guardManagedFields(admit registry.Admission) registry.Admission {
	mutate := admit.Mutate
	admit.Mutate = func(ctx context.Context, obj, old core.Object) error {
		var before []metav1.ManagedFieldsEntry
		if obj != nil {
			before = obj.GetManagedFields()
		}
		err := mutate(ctx, obj, old)
		if err == nil && obj != nil {
			if unreadable := managedfields.Guard(obj, before); unreadable != nil {
				request.Warn(ctx,
					".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission "+
						"controller; please fix your requests: "+unreadable.Error())
			}
		}
		return err
	}
	return admit
}

// dropUnreadableOwnership drops managedFields of which an entry is not JSON, as kube-apiserver does with
// those that can't be read, and reports whether there were any.
func dropUnreadableOwnership(object runtime.Object) bool {
	meta, ok := object.(metav1.Object)
	if !ok || !slices.ContainsFunc(meta.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1 != nil && !json.Valid(e.FieldsV1.GetRawBytes())
	}) {
		return false
	}
	meta.SetManagedFields(nil)
	return true
}
