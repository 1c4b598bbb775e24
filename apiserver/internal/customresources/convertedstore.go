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

// convertOne converts an object that a single request is about: what a webhook makes of it is asked for
// anew.
func (v *convertedStore) convertOne(ctx context.Context, e registry.Encoded) (registry.Encoded, error) {
	all, err := v.convertEach(ctx, []registry.Encoded{e}, v.convertTogether)
	if err != nil {
		return registry.Encoded{}, err
	}
	return all[0], nil
}

// convertAll converts objects to the view's version, as many requests see them.
func (v *convertedStore) convertAll(ctx context.Context, items []registry.Encoded) ([]registry.Encoded, error) {
	return v.convertEach(ctx, items, v.convertShared)
}

// convertEach converts objects to the view's version, those for which a webhook is needed by ask. The bytes
// of those that have it are reused.
func (v *convertedStore) convertEach(ctx context.Context, items []registry.Encoded,
	ask func(context.Context, []registry.Encoded) error) ([]registry.Encoded, error) {
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
	return out, v.decodeAndConvert(ctx, out, others, ask)
}

// decodeAndConvert converts the objects at the given places.
func (v *convertedStore) decodeAndConvert(ctx context.Context, items []registry.Encoded, places []int,
	ask func(context.Context, []registry.Encoded) error) error {
	return atPlaces(items, places, func(chosen []registry.Encoded) error {
		leave, err := v.converter.bound.Enter(ctx, chosen)
		if err != nil {
			return err
		}
		defer leave()
		if v.converter.webhook == nil {
			return v.renameEach(chosen)
		}
		return v.inChunks(ctx, chosen, ask)
	})
}

// atPlaces has the objects at the given places converted in place.
func atPlaces(items []registry.Encoded, places []int, convert func([]registry.Encoded) error) error {
	chosen := make([]registry.Encoded, len(places))
	for j, i := range places {
		chosen[j] = items[i]
	}
	err := convert(chosen)
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
		var ready []registry.WatchEvent
		size := 0
		for event, more := range w.inner.Events() {
			ready, size = append(ready, event), size+len(event.Object.JSON)
			if more && len(ready) < mostTogether && size < mostShown {
				continue
			}
			if !w.show(ready, more, yield) {
				return
			}
			ready, size = nil, 0 // an idle watch would hold what they were
		}
	}
}

// show yields events that came together, converted together; false ends the watch.
func (w *watcher) show(events []registry.WatchEvent, more bool, yield func(registry.WatchEvent, bool) bool) bool {
	converted := w.view.convertEvents(w.ctx, events)
	for i, shown := range converted {
		another := more || i+1 < len(converted)
		if w.selected != nil {
			var seen bool
			if shown, seen = w.selected.translate(shown); !seen {
				continue
			}
			another = false // the next one may not be seen
		}
		if shown.Type == cache.Error {
			yield(shown, false)
			return false
		}
		if !yield(shown, another) {
			return false
		}
	}
	return true
}

// convertEvents returns events in the view's version. If one can't be converted there is an error in its
// place, and nothing behind it.
func (v *convertedStore) convertEvents(ctx context.Context, events []registry.WatchEvent) []registry.WatchEvent {
	out := make([]registry.WatchEvent, len(events))
	var items []registry.Encoded
	var places []int
	for i, event := range events {
		if out[i] = event; event.Type == cache.Bookmark {
			out[i] = v.convertBookmark(event)
		} else if event.Type != cache.Error && !bytes.HasPrefix(event.Object.JSON, []byte(v.version.prefix)) {
			items, places = append(items, event.Object), append(places, i)
		}
	}
	items, err := v.convertAll(ctx, items)
	switch {
	case err != nil && len(events) == 1:
		return []registry.WatchEvent{cache.ErrorEvent(err)}
	case err != nil: // those before the one that is to blame are shown
		for i := range events {
			if out[i] = v.convertEvents(ctx, events[i:i+1])[0]; out[i].Type == cache.Error {
				return out[:i+1]
			}
		}
		return out
	}
	for j, i := range places { // a new one, because an event caches its frame
		out[i] = registry.WatchEvent{Type: events[i].Type, Object: items[j]}
	}
	return out
}

func (v *convertedStore) convertBookmark(event registry.WatchEvent) registry.WatchEvent {
	if o, err := unmarshal(event.Object.JSON); err == nil {
		o.SetAPIVersion(v.version.apiVersion())
		if value, err := marshal(o); err == nil {
			event.Object.JSON = value
		}
	}
	return event
}
