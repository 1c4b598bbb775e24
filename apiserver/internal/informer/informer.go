package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

// Source is what an Informer follows: a registry.Resource.
type Source interface {
	Info() registry.Info
	Decode(e registry.Encoded) (core.Object, error)
	List(ctx context.Context, namespace string, o registry.ListOptions) (registry.List, error)
	Watch(ctx context.Context, namespace string, o registry.ListOptions) (registry.Watcher, error)
}

// Key names an object.
type Key struct{ Namespace, Name string }

// String is namespace/name, or the name alone without a namespace.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Options are an Informer's optional settings.
type Options[P any] struct {
	// Index returns the value ("" for none) under which ByIndex finds items.
	Index func(P) string
	// Fields restricts the informer to some objects; nil for all.
	Fields fields.Selector
}

// Informer keeps a P of each object of one resource. Ps are shared and must not
// be changed. An Informer is safe for concurrent use.
type Informer[P any] struct {
	source   Source
	project  func(obj core.Object) P
	options  Options[P]
	clock    clock.Clock
	logger   *zap.Logger
	synced   chan struct{}
	handlers []func(key Key, old, new *P)

	mu    sync.RWMutex
	items map[Key]*P
	index map[string]map[Key]*P
	// revision is that of the items; when it changes, advanced is closed and
	// replaced.
	revision int64
	advanced chan struct{}
}

// New returns an Informer that is empty until Run. project may keep parts of
// the object it is given and must not change it.
func New[P any](source Source, project func(obj core.Object) P, o Options[P], clock clock.Clock, logger *zap.Logger) *Informer[P] {
	return &Informer[P]{
		source: source, project: project, options: o, clock: clock, logger: logger,
		synced: make(chan struct{}),
		items:  map[Key]*P{}, index: map[string]map[Key]*P{}, advanced: make(chan struct{}),
	}
}

// OnChange adds a function to be called for every change, from one goroutine,
// in order, outside locks: old is nil for a new object, new is nil for one that
// is gone. It must be called before Run.
func (i *Informer[P]) OnChange(f func(key Key, old, new *P)) { i.handlers = append(i.handlers, f) }

// relistPolicy is the back-off between lists while the store can't be read.
var relistPolicy = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// Run follows the resource until ctx ends.
func (i *Informer[P]) Run(ctx context.Context) error {
	for failures := 0; ; {
		listed, err := i.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if listed {
			failures = 0
		}
		failures++
		if err != nil && !apierrors.IsResourceExpired(err) {
			i.logger.Warn("following a resource failed, starting over", zap.String("resource", i.source.Info().Name), zap.Error(err))
		}
		if err := backoff.Sleep(ctx, i.clock, relistPolicy.Delay(failures)); err != nil {
			return err
		}
	}
}

// Synced is closed after the first list.
func (i *Informer[P]) Synced() <-chan struct{} { return i.synced }

// follow lists and then watches until the watch ends.
func (i *Informer[P]) follow(ctx context.Context) (listed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := i.source.List(ctx, "", registry.ListOptions{Fields: i.options.Fields})
	if err != nil {
		return false, fmt.Errorf("list: %w", err)
	}
	if err := i.replace(list.Items); err != nil {
		return false, err
	}
	if revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err == nil {
		i.advance(revision)
	}
	watcher, err := i.source.Watch(ctx, "", registry.ListOptions{Fields: i.options.Fields, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return true, fmt.Errorf("watch: %w", err)
	}
	for event := range watcher.Events() {
		if err := i.apply(event); err != nil {
			return true, err
		}
		i.advance(event.Object.Revision)
	}
	return true, nil
}

func (i *Informer[P]) advance(revision int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if revision > i.revision {
		i.revision = revision
		close(i.advanced)
		i.advanced = make(chan struct{})
	}
}

// WaitForRevision waits until the informer has all changes up to a revision, or ctx ends.
func (i *Informer[P]) WaitForRevision(ctx context.Context, revision int64) {
	for {
		i.mu.RLock()
		there, advanced := i.revision >= revision, i.advanced
		i.mu.RUnlock()
		if there {
			return
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return
		}
	}
}

func (i *Informer[P]) replace(list []registry.Encoded) error {
	items := make(map[Key]*P, len(list))
	for _, item := range list {
		obj, err := i.object(item)
		if err != nil {
			return err
		}
		p := i.project(obj)
		items[Key{obj.GetNamespace(), obj.GetName()}] = &p
	}
	i.mu.RLock()
	old := i.items
	i.mu.RUnlock()
	for key := range old {
		if items[key] == nil {
			i.put(key, nil)
		}
	}
	for key, p := range items {
		i.put(key, p)
	}
	select {
	case <-i.synced:
	default:
		close(i.synced)
	}
	return nil
}

// object is e decoded, for the projection only: it may be shared, and lack its
// resourceVersion.
func (i *Informer[P]) object(e registry.Encoded) (core.Object, error) {
	if e.Object != nil {
		return e.Object, nil
	}
	obj, err := i.source.Decode(e)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return obj, nil
}

var errWatchFailed = errors.New("the watch reported an error")

func (i *Informer[P]) apply(event registry.WatchEvent) error {
	switch event.Type {
	case "ADDED", "MODIFIED", "DELETED":
	case "ERROR":
		return errWatchFailed
	default:
		return nil
	}
	obj, err := i.object(event.Object)
	if err != nil {
		return err
	}
	key := Key{obj.GetNamespace(), obj.GetName()}
	if event.Type == "DELETED" {
		i.put(key, nil)
		return nil
	}
	p := i.project(obj)
	i.put(key, &p)
	return nil
}

// put stores p under key, or removes the entry if p is nil. Only Run's
// goroutine calls it.
func (i *Informer[P]) put(key Key, p *P) {
	i.mu.Lock()
	old := i.items[key]
	if p == nil {
		delete(i.items, key)
	} else {
		i.items[key] = p
	}
	if i.options.Index != nil {
		i.reindex(key, old, p)
	}
	i.mu.Unlock()
	if old == nil && p == nil {
		return
	}
	for _, f := range i.handlers {
		f(key, old, p)
	}
}

func (i *Informer[P]) reindex(key Key, old, p *P) {
	if old != nil {
		value := i.options.Index(*old)
		delete(i.index[value], key)
		if len(i.index[value]) == 0 {
			delete(i.index, value)
		}
	}
	if p == nil {
		return
	}
	value := i.options.Index(*p)
	if value == "" {
		return
	}
	if i.index[value] == nil {
		i.index[value] = map[Key]*P{}
	}
	i.index[value][key] = p
}

// Get returns what is known of one object.
func (i *Informer[P]) Get(namespace, name string) (p P, ok bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	found, ok := i.items[Key{namespace, name}]
	if !ok {
		return p, false
	}
	return *found, true
}

// List returns what is known of all objects, in no particular order.
func (i *Informer[P]) List() []P {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return values(i.items)
}

// Each calls f with what is known of every object, in no particular order. f
// must not wait for the informer.
func (i *Informer[P]) Each(f func(key Key, fact P)) {
	i.mu.RLock()
	known := maps.Clone(i.items)
	i.mu.RUnlock()
	for key, p := range known {
		f(key, *p)
	}
}

// ByIndex returns what is indexed under value.
func (i *Informer[P]) ByIndex(value string) []P {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return values(i.index[value])
}

func values[P any](m map[Key]*P) []P {
	out := make([]P, 0, len(m))
	for _, p := range m {
		out = append(out, *p)
	}
	return out
}
