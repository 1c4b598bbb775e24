package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/managedfields"
	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// View is a Resource that stores nothing: it shows the objects of another
// resource as another kind. It is a resource itself (events in two groups,
// autoscalers in two versions) or a subresource (a deployment's Scale).
type View struct {
	// Stored is where the objects are.
	Stored Resource
	// Subresource is the name of the subresource, or "" if the view is a resource.
	Subresource string
	Shown       Info
	NewKind     func() core.Object
	// Defaults fills in what the user left out; may be nil.
	Defaults func(shown core.Object)
	// Show turns a stored object into one of the view's kind.
	Show func(stored core.Object) (core.Object, error)
	// CheckShown returns why a stored object can't be shown to clients as long as no
	// update adds what it lacks; may be nil.
	CheckShown func(stored core.Object) error
	// WriteBack writes a changed shown object back into the stored one.
	WriteBack func(shown, stored core.Object) error
	// Validate checks what only the view requires of a new object, or of any object
	// if ValidateUpdate is nil; may be nil.
	Validate func(shown core.Object) field.ErrorList
	// ValidateUpdate checks what only the view requires of a changed object; stored
	// is the one before. May be nil.
	ValidateUpdate func(shown, stored core.Object) field.ErrorList
	// StoredField maps a selectable field to the stored kind's name for it, or "" if the view
	// has no such field; nil if they are the same.
	StoredField func(name string) string
	// Cells is the table row; if it is nil, the stored object's is used.
	Cells func(shown core.Object) []any

	// tracker works with the view's own fields; nil if fields have no owners. replicas
	// is the path, in the stored objects, of what a Scale shows.
	tracker  *managedfields.Tracker
	replicas managedfields.Replicas
}

var _ Resource = (*View)(nil)

// Info implements Resource.
func (v *View) Info() Info {
	info := v.Shown
	info.StoredAs = v.Stored.Info().StoredAs
	info.FieldTracker = v.tracker // errors of the stored kind name its own fields
	if info.Columns == nil {
		info.Columns = v.Stored.Info().Columns
	}
	return info
}

// shownStore is what a view needs to know of the Store behind it, besides the Resource.
type shownStore interface {
	Measure(namespace string, mostObjects, mostBytes int) (objects, bytes int)
	boundConversions() Conversions
}

// Measure is that of the store where the objects are; nothing, if it can't tell.
func (v *View) Measure(namespace string, mostObjects, mostBytes int) (objects, bytes int) {
	if stored, ok := v.Stored.(shownStore); ok {
		return stored.Measure(namespace, mostObjects, mostBytes)
	}
	return 0, 0
}

// New implements Resource.
func (v *View) New() core.Object { return v.NewKind() }

// Default implements Resource.
func (v *View) Default(obj core.Object) {
	if v.Defaults != nil {
		v.Defaults(obj)
	}
}

// Decode implements Resource.
func (v *View) Decode(e Encoded) (core.Object, error) {
	if e.Object != nil {
		return e.Object, nil
	}
	obj := v.NewKind()
	if err := json.Unmarshal(e.JSON, obj); err != nil {
		return nil, fmt.Errorf("decode %s: %w", v.Shown.Kind, err)
	}
	return obj, nil
}

// Row implements Resource.
func (v *View) Row(obj core.Object) []any {
	if v.Cells != nil {
		return v.Cells(obj)
	}
	stored := v.Stored.New()
	if err := v.WriteBack(obj, stored); err != nil {
		return []any{obj.GetName()}
	}
	return v.Stored.Row(stored)
}

// Get implements Resource.
func (v *View) Get(ctx context.Context, namespace, name, resourceVersion string) (Encoded, error) {
	e, err := v.Stored.Get(ctx, namespace, name, resourceVersion)
	if err != nil {
		return Encoded{}, v.named(err)
	}
	return v.encoded(e)
}

// named makes an error about a stored object name the view's resource, if the view is one.
func (v *View) named(err error) error {
	stored, shown := v.Stored.Info().GVR().GroupResource(), v.Shown.GVR().GroupResource()
	failure, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || v.Subresource != "" || stored == shown {
		return err
	}
	answer := failure.ErrStatus
	if answer.Details == nil || answer.Details.Group != stored.Group || answer.Details.Kind != stored.Resource {
		return err
	}
	answer.Details = answer.Details.DeepCopy()
	answer.Details.Group, answer.Details.Kind = shown.Group, shown.Resource
	answer.Message = strings.Replace(answer.Message, stored.String()+` "`, shown.String()+` "`, 1)
	return &apierrors.StatusError{ErrStatus: answer}
}

// List implements Resource.
func (v *View) List(ctx context.Context, namespace string, o ListOptions) (List, error) {
	o, err := v.selected(o)
	if err != nil {
		return List{}, err
	}
	list, err := v.Stored.List(ctx, namespace, o)
	if err != nil {
		return List{}, err
	}
	return v.list(ctx, list)
}

// Watch implements Resource.
func (v *View) Watch(ctx context.Context, namespace string, o ListOptions) (Watcher, error) {
	o, err := v.selected(o)
	if err != nil {
		return nil, err
	}
	inner, err := v.Stored.Watch(ctx, namespace, o)
	if err != nil {
		return nil, err
	}
	return viewWatcher{view: v, inner: inner}, nil
}

type viewWatcher struct {
	view  *View
	inner Watcher
}

// Events implements Watcher.
func (w viewWatcher) Events() iter.Seq2[WatchEvent, bool] {
	return func(yield func(WatchEvent, bool) bool) {
		for event, more := range w.inner.Events() {
			if event.Type != cache.Error {
				shown, err := w.show(event)
				if err != nil {
					return // the client lists again, and learns why then
				}
				event = WatchEvent{Type: event.Type, Object: shown}
			}
			if !yield(event, more) {
				return
			}
		}
	}
}

func (w viewWatcher) show(event WatchEvent) (Encoded, error) {
	if event.Type == cache.Bookmark {
		var err error
		if event.Object, err = WithoutDefaults(w.view.Stored, event.Object); err != nil {
			return Encoded{}, err
		}
	}
	return w.view.encoded(event.Object)
}

// Create implements Resource.
func (v *View) Create(ctx context.Context, obj core.Object, admit Admission, o *metav1.CreateOptions) (Encoded, error) {
	stored, err := v.writtenBack(obj, v.Stored.New(), false)
	if err != nil {
		return Encoded{}, err
	}
	e, err := v.Stored.Create(ctx, stored, v.admissionOfShown(admit), o)
	if err != nil {
		return Encoded{}, v.named(err)
	}
	return v.encoded(e)
}

// Update implements Resource.
func (v *View) Update(ctx context.Context, target Target, change Transform, admit Admission,
	o *metav1.UpdateOptions) (Encoded, bool, error) {
	if target.Subresource == v.Subresource {
		target.Subresource = ""
	}
	inner := func(current core.Object) (core.Object, error) {
		if current == nil {
			obj, err := change(nil)
			if err != nil {
				return nil, err
			}
			return v.writtenBack(obj, v.Stored.New(), false)
		}
		shown, err := v.showWithManagedFields(current)
		if err != nil {
			return nil, err
		}
		obj, err := change(shown)
		if err != nil {
			return nil, err
		}
		entries := current.GetManagedFields()
		stored, err := v.writtenBack(obj, current, true)
		if err == nil && v.tracker != nil {
			v.takeManagedFields(obj, stored, entries)
		}
		return stored, err
	}
	e, created, err := v.Stored.Update(ctx, target, inner, v.admissionOfShown(admit), o)
	if err != nil {
		return Encoded{}, false, v.named(err)
	}
	e, err = v.encoded(e)
	return e, created, err
}

// Delete implements Resource.
func (v *View) Delete(ctx context.Context, namespace, name string, admit Admission, o *metav1.DeleteOptions) (Encoded, bool, error) {
	e, gone, err := v.Stored.Delete(ctx, namespace, name, v.admissionOfShown(admit), o)
	if err != nil {
		return Encoded{}, gone, v.named(err)
	}
	e, err = v.encoded(e)
	return e, gone, err
}

// DeleteCollection implements Resource.
func (v *View) DeleteCollection(ctx context.Context, namespace string, admit Admission, o *metav1.DeleteOptions,
	list ListOptions) (List, error) {
	list, err := v.selected(list)
	if err != nil {
		return List{}, err
	}
	deleted, err := v.Stored.DeleteCollection(ctx, namespace, v.admissionOfShown(admit), o, list)
	if err != nil {
		return List{}, err
	}
	return v.list(ctx, deleted)
}

// writtenBack returns the stored object with the client's change to the shown one
// written into it.
func (v *View) writtenBack(shown, stored core.Object, changed bool) (core.Object, error) {
	v.Default(shown)
	var errs field.ErrorList
	switch {
	case changed && v.ValidateUpdate != nil:
		errs = v.ValidateUpdate(shown, stored)
	case v.Validate != nil:
		errs = v.Validate(shown)
	}
	if len(errs) > 0 {
		kind := v.Stored.Info().GVK()
		if v.Subresource != "" && !v.Stored.Info().JSONOnly {
			kind = v.Shown.GVK()
		}
		return nil, Invalid(kind.GroupKind(), shown.GetName(), errs)
	}
	return stored, v.WriteBack(shown, stored)
}

// admissionOfShown returns admission that sees objects of the view's kind.
func (v *View) admissionOfShown(admit Admission) Admission {
	wrap := func(inner func(ctx context.Context, obj, old core.Object) error) func(ctx context.Context, obj, old core.Object) error {
		if inner == nil {
			return nil
		}
		return func(ctx context.Context, obj, old core.Object) error {
			shown, err := v.show(obj)
			if err != nil {
				return err
			}
			before, err := v.show(old)
			if err != nil {
				return err
			}
			if err := inner(ctx, shown, before); err != nil || obj == nil {
				return err
			}
			return v.WriteBack(shown, obj)
		}
	}
	return Admission{
		TrackFields: v.trackFields(admit.TrackFields), FieldManager: admit.FieldManager,
		MayDropManagedFields: admit.MayDropManagedFields, Mutate: wrap(admit.Mutate), Validate: wrap(admit.Validate),
		CreatesIfMissing: admit.CreatesIfMissing,
	}
}

func (v *View) show(stored core.Object) (core.Object, error) {
	if stored == nil {
		return nil, nil
	}
	shown, err := v.Show(stored)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	shown.GetObjectKind().SetGroupVersionKind(v.Shown.GVK())
	return shown, nil
}

// encoded shows a stored object.
func (v *View) encoded(e Encoded) (Encoded, error) {
	if e.JSON == nil && e.Object == nil {
		return e, nil
	}
	stored, err := v.Stored.Decode(e)
	if err != nil {
		return Encoded{}, apierrors.NewInternalError(err)
	}
	if v.CheckShown != nil {
		if err := v.CheckShown(stored); err != nil {
			return Encoded{}, apierrors.NewInternalError(err)
		}
	}
	shown, err := v.show(stored)
	if err != nil {
		return Encoded{}, err
	}
	text, err := scheme.Encode(shown)
	if err != nil {
		return Encoded{}, apierrors.NewInternalError(fmt.Errorf("encode %s: %w", v.Shown.Kind, err))
	}
	return Encoded{JSON: text, Revision: e.Revision, Object: shown}, nil
}

func (v *View) list(ctx context.Context, list List) (List, error) {
	if stored, ok := v.Stored.(shownStore); ok {
		leave, err := stored.boundConversions().Enter(ctx, list.Items)
		if err != nil {
			return List{}, err
		}
		defer leave()
	}
	for i, item := range list.Items {
		shown, err := v.encoded(item)
		if err != nil {
			return List{}, err
		}
		shown.Object = nil // a list is sent as bytes
		list.Items[i] = shown
	}
	return list, nil
}

func (v *View) selected(o ListOptions) (ListOptions, error) {
	if v.StoredField == nil || o.Fields == nil {
		return o, nil
	}
	var err error
	o.Fields, err = o.Fields.Transform(func(name, value string) (string, string, error) {
		stored := v.StoredField(name)
		if stored == "" {
			return "", "", apierrors.NewBadRequest("field label not supported: " + name)
		}
		return stored, value, nil
	})
	return o, err
}
