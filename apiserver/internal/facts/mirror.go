package facts

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

// Source is what a Mirror follows: a registry.Resource.
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

// Options are a Mirror's optional settings.
type Options[P any] struct {
	// Index returns the value ("" for none) under which ByIndex finds facts.
	Index func(P) string
	// Fields restricts the mirror to some objects; nil for all.
	Fields fields.Selector
}

// Mirror keeps a P of each object of one resource. Ps are shared and must not
// be changed. A Mirror is safe for concurrent use.
type Mirror[P any] struct {
	source   Source
	project  func(obj core.Object) P
	options  Options[P]
	clock    clock.Clock
	logger   *zap.Logger
	synced   chan struct{}
	handlers []func(key Key, old, new *P)

	mu    sync.RWMutex
	facts map[Key]*P
	index map[string]map[Key]*P
	// revision is that of the facts; when it changes, risen is closed and
	// replaced.
	revision int64
	advanced chan struct{}
}

// NewMirror returns a Mirror that is empty until Run. project may keep parts of
// the object it is given and must not change it.
func NewMirror[P any](source Source, project func(obj core.Object) P, o Options[P], clock clock.Clock, logger *zap.Logger) *Mirror[P] {
	return &Mirror[P]{
		source: source, project: project, options: o, clock: clock, logger: logger,
		synced: make(chan struct{}),
		facts:  map[Key]*P{}, index: map[string]map[Key]*P{}, advanced: make(chan struct{}),
	}
}

// OnChange adds a function to be called for every change, from one goroutine,
// in order, outside locks: old is nil for a new object, new is nil for one that
// is gone. It must be called before Run.
func (m *Mirror[P]) OnChange(f func(key Key, old, new *P)) { m.handlers = append(m.handlers, f) }

// relistPolicy is the back-off between lists while the store can't be read.
var relistPolicy = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.5}

// Run follows the resource until ctx ends.
func (m *Mirror[P]) Run(ctx context.Context) error {
	for failures := 0; ; {
		listed, err := m.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if listed {
			failures = 0
		}
		failures++
		if err != nil && !apierrors.IsResourceExpired(err) {
			m.logger.Warn("following a resource failed, starting over", zap.String("resource", m.source.Info().Name), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.clock.After(relistPolicy.Delay(failures)):
		}
	}
}

// Synced is closed after the first list.
func (m *Mirror[P]) Synced() <-chan struct{} { return m.synced }

// follow lists and then watches until the watch ends.
func (m *Mirror[P]) follow(ctx context.Context) (listed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := m.source.List(ctx, "", registry.ListOptions{Fields: m.options.Fields})
	if err != nil {
		return false, fmt.Errorf("list: %w", err)
	}
	if err := m.replace(list.Items); err != nil {
		return false, err
	}
	if revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err == nil {
		m.advance(revision)
	}
	watcher, err := m.source.Watch(ctx, "", registry.ListOptions{Fields: m.options.Fields, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return true, fmt.Errorf("watch: %w", err)
	}
	for event := range watcher.Events() {
		if err := m.apply(event); err != nil {
			return true, err
		}
		m.advance(event.Object.Revision)
	}
	return true, nil
}

func (m *Mirror[P]) advance(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.revision {
		m.revision = revision
		close(m.advanced)
		m.advanced = make(chan struct{})
	}
}

// WaitForRevision waits until the mirror has all changes up to a revision, or ctx ends.
func (m *Mirror[P]) WaitForRevision(ctx context.Context, revision int64) {
	for {
		m.mu.RLock()
		there, risen := m.revision >= revision, m.advanced
		m.mu.RUnlock()
		if there {
			return
		}
		select {
		case <-risen:
		case <-ctx.Done():
			return
		}
	}
}

func (m *Mirror[P]) replace(items []registry.Encoded) error {
	facts := make(map[Key]*P, len(items))
	for _, item := range items {
		obj, err := m.object(item)
		if err != nil {
			return err
		}
		p := m.project(obj)
		facts[Key{obj.GetNamespace(), obj.GetName()}] = &p
	}
	m.mu.RLock()
	old := m.facts
	m.mu.RUnlock()
	for key := range old {
		if facts[key] == nil {
			m.put(key, nil)
		}
	}
	for key, p := range facts {
		m.put(key, p)
	}
	select {
	case <-m.synced:
	default:
		close(m.synced)
	}
	return nil
}

// object is e decoded, for the projection only: it may be shared, and lack its
// resourceVersion.
func (m *Mirror[P]) object(e registry.Encoded) (core.Object, error) {
	if e.Object != nil {
		return e.Object, nil
	}
	obj, err := m.source.Decode(e)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return obj, nil
}

var errWatchFailed = errors.New("the watch reported an error")

func (m *Mirror[P]) apply(event registry.WatchEvent) error {
	switch event.Type {
	case "ADDED", "MODIFIED", "DELETED":
	case "ERROR":
		return errWatchFailed
	default:
		return nil
	}
	obj, err := m.object(event.Object)
	if err != nil {
		return err
	}
	key := Key{obj.GetNamespace(), obj.GetName()}
	if event.Type == "DELETED" {
		m.put(key, nil)
		return nil
	}
	p := m.project(obj)
	m.put(key, &p)
	return nil
}

// put stores p under key, or removes the entry if p is nil. Only Run's
// goroutine calls it.
func (m *Mirror[P]) put(key Key, p *P) {
	m.mu.Lock()
	old := m.facts[key]
	if p == nil {
		delete(m.facts, key)
	} else {
		m.facts[key] = p
	}
	if m.options.Index != nil {
		m.reindex(key, old, p)
	}
	m.mu.Unlock()
	if old == nil && p == nil {
		return
	}
	for _, f := range m.handlers {
		f(key, old, p)
	}
}

func (m *Mirror[P]) reindex(key Key, old, p *P) {
	if old != nil {
		value := m.options.Index(*old)
		delete(m.index[value], key)
		if len(m.index[value]) == 0 {
			delete(m.index, value)
		}
	}
	if p == nil {
		return
	}
	value := m.options.Index(*p)
	if value == "" {
		return
	}
	if m.index[value] == nil {
		m.index[value] = map[Key]*P{}
	}
	m.index[value][key] = p
}

// Get returns what is known of one object.
func (m *Mirror[P]) Get(namespace, name string) (p P, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found, ok := m.facts[Key{namespace, name}]
	if !ok {
		return p, false
	}
	return *found, true
}

// List returns what is known of all objects, in no particular order.
func (m *Mirror[P]) List() []P {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return values(m.facts)
}

// Each calls f with what is known of every object, in no particular order. f
// must not wait for the mirror.
func (m *Mirror[P]) Each(f func(key Key, fact P)) {
	m.mu.RLock()
	known := maps.Clone(m.facts)
	m.mu.RUnlock()
	for key, p := range known {
		f(key, *p)
	}
}

// ByIndex returns what is indexed under value.
func (m *Mirror[P]) ByIndex(value string) []P {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return values(m.index[value])
}

func values[P any](m map[Key]*P) []P {
	out := make([]P, 0, len(m))
	for _, p := range m {
		out = append(out, *p)
	}
	return out
}
