package customresources

import (
	"bytes"
	"context"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/core"
)

// convertedStore is a version whose objects may be stored in another: they are converted
// on their way to the client.
type convertedStore struct {
	*registry.Store[*object]
	converter *converter
	version   *compiledVersion
}

var _ versionStore = (*convertedStore)(nil)

// Get implements registry.Resource.
func (v *convertedStore) Get(ctx context.Context, namespace, name, resourceVersion string) (registry.Encoded, error) {
	e, err := v.Store.Get(ctx, namespace, name, resourceVersion)
	if err != nil {
		return e, err
	}
	return v.convertOne(ctx, e)
}

// List implements registry.Resource.
func (v *convertedStore) List(ctx context.Context, namespace string, o registry.ListOptions) (registry.List, error) {
	o, own, err := v.splitSelectors(o)
	if err != nil {
		return registry.List{}, err
	}
	list, err := v.Store.List(ctx, namespace, o)
	if err != nil {
		return list, err
	}
	list.Items, err = v.convertAll(ctx, list.Items)
	if err != nil || own == nil {
		return list, err
	}
	return v.filterPage(own, list)
}

// Create implements registry.Resource.
func (v *convertedStore) Create(ctx context.Context, obj core.Object, admit registry.Admission,
	o *metav1.CreateOptions) (registry.Encoded, error) {
	e, err := v.Store.Create(ctx, obj, admit, o)
	if err != nil {
		return e, err
	}
	return v.convertOne(ctx, e)
}

// Update implements registry.Resource.
func (v *convertedStore) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	e, created, err := v.Store.Update(ctx, target, change, admit, o)
	if err != nil {
		return e, created, err
	}
	e, err = v.convertOne(ctx, e)
	return e, created, err
}

// Delete implements registry.Resource.
func (v *convertedStore) Delete(ctx context.Context, namespace, name string, admit registry.Admission,
	o *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	e, gone, err := v.Store.Delete(ctx, namespace, name, admit, o)
	if err != nil || e.JSON == nil { // what can't be read is not shown
		return e, gone, err
	}
	e, err = v.convertOne(ctx, e)
	return e, gone, err
}

// DeleteCollection implements registry.Resource.
func (v *convertedStore) DeleteCollection(ctx context.Context, namespace string, admit registry.Admission, o *metav1.DeleteOptions,
	list registry.ListOptions) (registry.List, error) {
	list, own, err := v.splitSelectors(list)
	if err != nil {
		return registry.List{}, err
	}
	if own != nil {
		list.Fields = fields.AndSelectors(list.Fields, own)
		return registry.DeleteEach(ctx, v, namespace, admit, o, list)
	}
	deleted, err := v.Store.DeleteCollection(ctx, namespace, admit, o, list)
	if err != nil {
		return deleted, err
	}
	deleted.Items, err = v.convertAll(ctx, deleted.Items)
	return deleted, err
}

func (v *convertedStore) convertOne(ctx context.Context, e registry.Encoded) (registry.Encoded, error) {
	all, err := v.convertAll(ctx, []registry.Encoded{e})
	if err != nil {
		return registry.Encoded{}, err
	}
	return all[0], nil
}

// convertAll converts objects to the view's version. The bytes of those that have it
// are reused.
func (v *convertedStore) convertAll(ctx context.Context, items []registry.Encoded) ([]registry.Encoded, error) {
	var others []int
	for i, item := range items {
		if !bytes.HasPrefix(item.JSON, []byte(v.version.prefix)) {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		return items, nil
	}
	out := slices.Clone(items)
	others = slices.DeleteFunc(others, func(i int) bool {
		renamed, ok := v.renameEncoded(items[i].JSON)
		if ok {
			out[i] = registry.Encoded{JSON: renamed, Revision: items[i].Revision}
		}
		return ok
	})
	if len(others) == 0 {
		return out, nil
	}
	return out, v.decodeAndConvert(ctx, out, others)
}

// decodeAndConvert converts the objects at the given places.
func (v *convertedStore) decodeAndConvert(ctx context.Context, items []registry.Encoded, places []int) error {
	chosen := make([]registry.Encoded, len(places))
	for j, i := range places {
		chosen[j] = items[i]
	}
	leave, err := v.converter.bound.Enter(ctx, chosen)
	if err != nil {
		return err
	}
	defer leave()
	if v.converter.webhook == nil {
		err = v.renameEach(chosen)
	} else {
		err = v.convertTogether(ctx, chosen)
	}
	for j, i := range places {
		items[i] = chosen[j]
	}
	return err
}

// renameEncoded converts an object without decoding it, if nothing but its version's name
// changes.
func (v *convertedStore) renameEncoded(value []byte) (renamed []byte, ok bool) {
	if v.converter.webhook != nil {
		return nil, false
	}
	from := v.converter.versionIn(value)
	if from == nil {
		return nil, false
	}
	return v.version.renameEncoded(value, from)
}

// renameEach converts objects in place, where fields are dropped besides: one after
// another, because a decoded object takes many times its size.
func (v *convertedStore) renameEach(items []registry.Encoded) error {
	for i := range items {
		o, err := v.converter.decodeStored(items[i].JSON)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		v.version.rename(o)
		if items[i], err = encoded(o, items[i].Revision); err != nil {
			return err
		}
	}
	return nil
}

// convertTogether converts objects in place, in one call of the webhook.
func (v *convertedStore) convertTogether(ctx context.Context, items []registry.Encoded) error {
	objects := make([]*object, len(items))
	var err error
	for i, item := range items {
		if objects[i], err = v.converter.decodeStored(item.JSON); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	converted, err := v.converter.convertAll(ctx, v.version, objects)
	if err != nil {
		return err
	}
	for i, o := range converted {
		if items[i], err = encoded(o, items[i].Revision); err != nil {
			return err
		}
	}
	return nil
}

func encoded(o *object, revision int64) (registry.Encoded, error) {
	value, err := marshal(o)
	if err != nil {
		return registry.Encoded{}, apierrors.NewInternalError(err)
	}
	return registry.Encoded{JSON: value, Revision: revision}, nil
}

// Watch implements registry.Resource.
func (v *convertedStore) Watch(ctx context.Context, namespace string, o registry.ListOptions) (registry.Watcher, error) {
	o, own, err := v.splitSelectors(o)
	if err != nil {
		return nil, err
	}
	var within *selectedSet
	if own != nil {
		if within, o, err = v.newSelectedSet(ctx, namespace, o, own); err != nil {
			return nil, err
		}
	}
	inner, err := v.Store.Watch(ctx, namespace, o)
	if err != nil {
		return nil, err
	}
	return &watcher{ctx: ctx, view: v, inner: inner, selected: within}, nil
}

type watcher struct {
	ctx   context.Context
	view  *convertedStore
	inner registry.Watcher
	// selected leaves out what is not selected; nil if inner does all of that.
	selected *selectedSet
}

// Events implements registry.Watcher.
func (w *watcher) Events() iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		for event, more := range w.inner.Events() {
			shown := w.view.convertEvent(w.ctx, event)
			if w.selected != nil {
				var seen bool
				if shown, seen = w.selected.translate(shown); !seen {
					continue
				}
				more = false // the next one may not be seen
			}
			if shown.Type == cache.Error {
				yield(shown, false)
				return
			}
			if !yield(shown, more) {
				return
			}
		}
	}
}

// convertEvent returns an event in the view's version; an error if it can't be converted.
func (v *convertedStore) convertEvent(ctx context.Context, event registry.WatchEvent) registry.WatchEvent {
	switch event.Type {
	case cache.Error:
		return event
	case cache.Bookmark:
		if o, err := unmarshal(event.Object.JSON); err == nil {
			o.SetAPIVersion(v.version.apiVersion())
			if value, err := marshal(o); err == nil {
				event.Object.JSON = value
			}
		}
		return event
	}
	if bytes.HasPrefix(event.Object.JSON, []byte(v.version.prefix)) {
		return event
	}
	e, err := v.convertOne(ctx, event.Object)
	if err != nil {
		return cache.ErrorEvent(err)
	}
	return registry.WatchEvent{Type: event.Type, Object: e}
}
