package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/proto/core"
)

// ChangesOnlyGarbageFields reports whether the request changes only what garbage
// collection needs, or nothing at all, as a migration of storage does. Everything else
// may matter to whoever grants rights by the object, even a label.
func (a *Attributes) ChangesOnlyGarbageFields() bool {
	if a.Object == nil || a.OldObject == nil {
		return false
	}
	old, same := a.OldObject, a.Object.DeepCopyObject().(core.Object)
	same.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
	same.SetResourceVersion(old.GetResourceVersion())
	same.SetManagedFields(old.GetManagedFields())
	same.SetOwnerReferences(old.GetOwnerReferences())
	same.SetFinalizers(old.GetFinalizers())
	return equality.Semantic.DeepEqual(same, old)
}
