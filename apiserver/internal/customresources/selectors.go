package customresources

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
)

// splitSelectors removes from the options the selectors that only an object in the
// view's version can answer: with a conversion webhook, a version's fields
// differ from the stored ones. own is nil if the store can select.
func (v *convertedStore) splitSelectors(o registry.ListOptions) (inner registry.ListOptions, own fields.Selector, err error) {
	if o.Fields == nil {
		return o, nil, nil
	}
	var here, there []fields.Selector
	for _, r := range o.Fields.Requirements() {
		term := fields.OneTermEqualSelector(r.Field, r.Value)
		if r.Operator == selection.NotEquals {
			term = fields.OneTermNotEqualSelector(r.Field, r.Value)
		}
		switch {
		case strings.HasPrefix(r.Field, "metadata."):
			there = append(there, term)
		case !v.version.isSelectable(r.Field):
			return o, nil, apierrors.NewBadRequest(notSelectable(r.Field))
		default:
			here = append(here, term)
		}
	}
	if v.converter.webhook == nil || len(here) == 0 {
		return o, nil, nil
	}
	o.Fields = fields.AndSelectors(there...)
	return o, fields.AndSelectors(here...), nil
}

func notSelectable(name string) string { return "field label not supported: " + name }

func (f *compiledVersion) isSelectable(name string) bool {
	return slices.ContainsFunc(f.selectableFields, func(s selectable) bool { return s.name == name })
}

// filterPage are the objects of a page that own selects. The page may become
// short, or empty: clients go on with continue.
func (v *convertedStore) filterPage(own fields.Selector, page registry.List) (registry.List, error) {
	out := page
	out.Items, out.Remaining = make([]registry.Encoded, 0, len(page.Items)), nil
	for _, item := range page.Items {
		o, err := unmarshal(item.JSON)
		if err != nil {
			return out, apierrors.NewInternalError(err)
		}
		if own.Matches(selectableSet(v.version.selectableFields, o)) {
			out.Items = append(out.Items, item)
		}
	}
	return out, nil
}

// selectedSet is the set of objects that a watch with selectors on the view's fields
// sees; objects enter and leave it as they change.
type selectedSet struct {
	view *convertedStore
	own  fields.Selector
	seen map[string][]byte // by namespace and name; as last shown
}

// newSelectedSet initialises a watch's sight with the objects at its resourceVersion. The
// returned options begin the watch exactly there.
func (v *convertedStore) newSelectedSet(ctx context.Context, namespace string, o registry.ListOptions,
	own fields.Selector) (*selectedSet, registry.ListOptions, error) {
	s := &selectedSet{view: v, own: own, seen: map[string][]byte{}}
	unversioned := o.ResourceVersion == "" || o.ResourceVersion == "0"
	if ptr.Deref(o.SendInitialEvents, unversioned) {
		return s, o, nil // everything comes as ADDED
	}
	at := registry.ListOptions{Labels: o.Labels, Fields: o.Fields, ResourceVersion: o.ResourceVersion}
	if !unversioned {
		at.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	list, err := v.Store.List(ctx, namespace, at)
	if err != nil {
		return nil, o, err
	}
	o.ResourceVersion = list.ResourceVersion
	if list.Items, err = v.convertAll(ctx, list.Items); err != nil {
		return nil, o, err
	}
	if list, err = v.filterPage(own, list); err != nil {
		return nil, o, err
	}
	for _, item := range list.Items {
		if shown, err := unmarshal(item.JSON); err == nil { // matching has read it
			s.seen[shown.GetNamespace()+"/"+shown.GetName()] = item.JSON
		}
	}
	return s, o, nil
}

// translate returns what the watcher sees of a change in the view's version; false
// if nothing.
func (s *selectedSet) translate(event registry.WatchEvent) (registry.WatchEvent, bool) {
	if event.Type == cache.Error || event.Type == cache.Bookmark {
		return event, true
	}
	o, err := unmarshal(event.Object.JSON)
	if err != nil {
		return cache.ErrorEvent(err), true
	}
	key := o.GetNamespace() + "/" + o.GetName()
	last, had := s.seen[key]
	if event.Type != cache.Deleted && s.own.Matches(selectableSet(s.view.version.selectableFields, o)) {
		s.seen[key] = event.Object.JSON
		kind := cache.Added
		if had {
			kind = cache.Modified
		}
		return registry.WatchEvent{Type: kind, Object: event.Object}, true // a copy, because an event caches its frame
	}
	delete(s.seen, key)
	if had && event.Type != cache.Deleted {
		event = deletedEvent(event, last, o.GetResourceVersion())
	}
	return event, had
}

// deletedEvent is the event for an object that no longer matches: its last matching
// state, at the revision of the change.
func deletedEvent(event registry.WatchEvent, last []byte, resourceVersion string) registry.WatchEvent {
	if o, err := unmarshal(last); err == nil {
		o.SetResourceVersion(resourceVersion)
		if value, err := marshal(o); err == nil {
			last = value
		}
	}
	return registry.WatchEvent{Type: cache.Deleted, Object: registry.Encoded{JSON: last, Revision: event.Object.Revision}}
}
