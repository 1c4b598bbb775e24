package registry

import (
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// NewObjectView returns a view of whole objects, whose managedFields use the view's
// field names.
func NewObjectView(v View) *View {
	v.tracker = v.Stored.Info().FieldTracker.Form(v.Shown.GVK(), v.NewKind, v.Default, v.Show, func(shown core.Object) (core.Object, error) {
		stored := v.Stored.New()
		return stored, v.WriteBack(shown, stored)
	})
	return &v
}

// NewScaleView returns the Scale of objects: a manager that sets the replicas
// through it owns them at the path that replicas gives for the objects' version
// (Kubernetes docs, "Server-Side Apply", "Transferring ownership").
func NewScaleView(v View, replicas managedfields.Replicas, clock clock.PassiveClock) *View {
	v.replicas = replicas
	v.tracker = managedfields.New(managedfields.Options{
		Kind:   autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
		Schema: func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeFor[autoscalingv1.Scale]()) },
		New:    v.NewKind,
		Clock:  clock,
	})
	return &v
}

// showWithManagedFields shows a stored object with the part of its
// managedFields that is about what is shown.
func (v *View) showWithManagedFields(stored core.Object) (core.Object, error) {
	shown, err := v.show(stored)
	if err != nil || shown == nil || v.replicas == nil {
		return shown, err
	}
	entries, err := managedfields.ToScale(stored.GetManagedFields(), v.storedVersion(), v.replicas)
	if err == nil {
		shown.SetManagedFields(entries)
	}
	return shown, nil
}

// takeManagedFields writes changed managedFields of a shown object back to the
// stored one; before are those it had.
func (v *View) takeManagedFields(shown, stored core.Object, before []metav1.ManagedFieldsEntry) {
	entries := shown.GetManagedFields()
	if v.replicas != nil {
		var err error
		if entries, err = managedfields.FromScale(before, entries, v.storedVersion(), v.replicas); err != nil {
			entries = before
		}
	}
	stored.SetManagedFields(entries)
}

func (v *View) storedVersion() schema.GroupVersion { return v.Stored.Info().GVK().GroupVersion() }

// trackFields makes a manager the owner of what it changed in a stored object
// through the shown one. It never refuses the change.
func (v *View) trackFields(inner func(obj, old core.Object, before []byte)) func(obj, old core.Object, before []byte) {
	if inner == nil {
		return nil
	}
	return func(obj, old core.Object, _ []byte) {
		shown, err := v.showWithManagedFields(obj)
		if err != nil {
			return
		}
		var entries []metav1.ManagedFieldsEntry
		var was core.Object
		var before []byte
		if old != nil {
			entries = old.GetManagedFields()
			if was, err = v.showWithManagedFields(old); err != nil {
				return
			}
			if before, err = scheme.Encode(was); err != nil {
				return
			}
		}
		inner(shown, was, before)
		v.takeManagedFields(shown, obj, entries)
	}
}
