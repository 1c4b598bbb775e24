package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
)

// Get implements Resource.
func (s *Store[T]) Get(ctx context.Context, namespace, name, resourceVersion string) (Encoded, error) {
	at, err := parseFreshness(resourceVersion)
	if err != nil {
		return Encoded{}, err
	}
	e, err := s.read(ctx, s.key(namespace, name), at)
	if err != nil {
		return Encoded{}, s.statusOf(err, "get", name)
	}
	return Encoded{JSON: e.Value, Revision: e.Revision}, nil
}

// read reads one object from the cache, or from etcd if the cache is stopped.
func (s *Store[T]) read(ctx context.Context, key string, at freshness) (*cache.Entry, error) {
	err := at.wait(ctx, s.cache)
	if isStopped(err) {
		return s.cache.GetStored(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	if e, ok := s.cache.Get(key); ok {
		return e, nil
	}
	if s.cache.Ready() != nil { // since then: changes of the object no longer arrive
		return s.cache.GetStored(ctx, key)
	}
	return nil, storage.ErrNotFound
}

// isStopped reports whether etcd has to be asked, because the cache lacks what has happened
// meanwhile.
func isStopped(err error) bool {
	return errors.Is(err, cache.ErrHeldBack) || errors.Is(err, cache.ErrEnded)
}

// List implements Resource.
func (s *Store[T]) List(ctx context.Context, namespace string, o ListOptions) (List, error) {
	if errs := checkListMatch(o); len(errs) > 0 {
		return List{}, invalidOptions(errs)
	}
	page, err := s.selection(namespace, o)
	if err != nil {
		return List{}, err
	}
	plan, err := planList(page.Prefix, o)
	if err != nil {
		return List{}, err
	}
	limit := o.Limit
	if o.ResourceVersion == "0" {
		limit = 0 // a client that accepts any state gets it whole, as from upstream's cache
	}
	found, err := s.readPage(ctx, cache.Page{Selection: page, After: plan.after, Limit: limit}, plan)
	if err != nil {
		return List{}, s.listError(err, page.Prefix, o, plan)
	}
	return answer(page.Prefix, found)
}

func (s *Store[T]) readPage(ctx context.Context, page cache.Page, plan listPlan) (cache.List, error) {
	err := plan.freshness.wait(ctx, s.cache)
	if isStopped(err) && (plan.exact || plan.freshness.current) {
		return s.cache.ListStored(ctx, page, plan.freshness.revision) // of what else there is
	}
	if err != nil {
		return cache.List{}, err
	}
	if plan.exact {
		return s.cache.ListAt(ctx, page, plan.freshness.revision)
	}
	return s.cache.List(page), nil
}

// listError offers clients whose continue token is too old to go on in the
// present state, as upstream does.
func (s *Store[T]) listError(err error, prefix string, o ListOptions, plan listPlan) error {
	switch {
	case !errors.Is(err, storage.ErrCompacted):
		return s.statusOf(err, "list", "")
	case o.Continue == "":
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	token, tokenErr := encodeToken(prefix, plan.after, latest)
	if tokenErr != nil {
		return apierrors.NewInternalError(tokenErr)
	}
	expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted " +
		"between the time the first chunk was returned and now may show up in the list.")
	expired.ErrStatus.ListMeta.Continue = token
	return expired
}

func answer(prefix string, found cache.List) (List, error) {
	list := List{
		Items:           make([]Encoded, len(found.Entries)),
		ResourceVersion: strconv.FormatInt(found.Revision, 10),
	}
	for i, e := range found.Entries {
		list.Items[i] = Encoded{JSON: e.Value, Revision: e.Revision}
	}
	if !found.More {
		return list, nil
	}
	var err error
	if list.Continue, err = encodeToken(prefix, found.Entries[len(found.Entries)-1].Key, found.Revision); err != nil {
		return List{}, apierrors.NewInternalError(err)
	}
	if found.Remaining >= 0 {
		list.Remaining = &found.Remaining
	}
	return list, nil
}

// Watch implements Resource.
func (s *Store[T]) Watch(ctx context.Context, namespace string, o ListOptions) (Watcher, error) {
	if err := checkWatchMatch(o); err != nil {
		return nil, err
	}
	selection, err := s.selection(namespace, o)
	if err != nil {
		return nil, err
	}
	plan, err := planWatch(o)
	if err != nil {
		return nil, err
	}
	if err := plan.freshness.wait(ctx, s.cache); err != nil {
		return nil, s.statusOf(err, "watch", "")
	}
	since := plan.since
	if plan.sinceNow {
		since = s.cache.Revision()
	}
	watcher, err := s.cache.Watch(ctx, cache.WatchOptions{
		Selection:         selection,
		Since:             since,
		SendInitialEvents: plan.sendInitialEvents,
		Bookmarks:         o.AllowBookmarks,
		InitialEventsEnd:  plan.initialEventsEnd,
		InitialEventsSent: o.InitialEventsSent,
		BatchDelay:        o.BatchDelay,
	})
	if err != nil {
		return nil, s.statusOf(err, "watch", "")
	}
	return watcher, nil
}

func (s *Store[T]) fieldNotSelectable(name string) error {
	if s.strategy.Read.UnknownFieldMessage != nil {
		return apierrors.NewBadRequest(s.strategy.Read.UnknownFieldMessage(name))
	}
	if s.strategy.Read.Fields != nil {
		return apierrors.NewBadRequest("field label not supported: " + name)
	}
	return UnknownField(name)
}

// UnknownField refuses a field selector of a resource whose objects can only be
// selected by name and namespace.
func UnknownField(name string) error {
	return apierrors.NewBadRequest(fmt.Sprintf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, name))
}

// selection checks the field names, and narrows the keys to the namespace.
func (s *Store[T]) selection(namespace string, o ListOptions) (cache.Selection, error) {
	if o.Fields != nil {
		for _, r := range o.Fields.Requirements() {
			if !s.selectable.Has(r.Field) {
				return cache.Selection{}, s.fieldNotSelectable(r.Field)
			}
		}
	}
	selection := cache.NewSelection(s.key(namespace, ""), o.Labels, o.Fields)
	if selection.Fields != nil && selection.Fields.Empty() {
		selection.Fields = nil
	}
	return selection, nil
}
