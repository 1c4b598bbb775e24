package watch

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/proto/core"
)

// IndexFunc gives the values under which an object is found in an index.
type IndexFunc[T core.Object] func(obj T) []string

// Handler is called for each change once the Store has it, in order, from the
// Reflector's goroutine: it must not block for long. Nil functions are skipped.
type Handler[T core.Object] struct {
	OnAdd    func(obj T)
	OnUpdate func(old, obj T)
	OnDelete func(obj T)
}

// Store is a Sink that holds objects by namespace and name and by index. The
// objects are shared with every caller and must not be changed. It is safe for
// concurrent use; Replace and Apply must come from one goroutine.
type Store[T core.Object] struct {
	indexers map[string]IndexFunc[T]
	handlers []Handler[T]

	mu      sync.RWMutex
	objects map[types.NamespacedName]T
	// indices: index name → value → keys
	indices map[string]map[string]sets.Set[types.NamespacedName]
}

// NewStore returns an empty Store with the given indices and handlers.
func NewStore[T core.Object](indexers map[string]IndexFunc[T], handlers ...Handler[T]) *Store[T] {
	s := &Store[T]{
		indexers: indexers, handlers: handlers,
		objects: map[types.NamespacedName]T{},
		indices: map[string]map[string]sets.Set[types.NamespacedName]{},
	}
	for name := range indexers {
		s.indices[name] = map[string]sets.Set[types.NamespacedName]{}
	}
	return s
}

func keyOf[T core.Object](obj T) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Get returns the object of that name, if the Store has it.
func (s *Store[T]) Get(namespace, name string) (T, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj, ok := s.objects[types.NamespacedName{Namespace: namespace, Name: name}]
	return obj, ok
}

// List returns every object, in no order.
func (s *Store[T]) List() []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]T, 0, len(s.objects)), maps.Values(s.objects))
}

// ByIndex returns the objects that index has under value, in no order.
func (s *Store[T]) ByIndex(index, value string) []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := s.indices[index][value]
	out := make([]T, 0, len(keys))
	for key := range keys {
		out = append(out, s.objects[key])
	}
	return out
}

// Len is how many objects the Store has.
func (s *Store[T]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// Replace implements Sink: handlers are called only for what differs.
func (s *Store[T]) Replace(items []T) {
	kept := make(sets.Set[types.NamespacedName], len(items))
	for _, obj := range items {
		kept.Insert(keyOf(obj))
		if old, ok := s.Get(obj.GetNamespace(), obj.GetName()); ok && old.GetResourceVersion() == obj.GetResourceVersion() {
			continue
		}
		s.Apply(Modified, obj)
	}
	for _, obj := range s.List() {
		if !kept.Has(keyOf(obj)) {
			s.Apply(Deleted, obj)
		}
	}
}

// Apply implements Sink. An object that replaced another of the same name (with
// another UID) is reported as a deletion and an addition; if the deletion comes after
// that, it is no news.
func (s *Store[T]) Apply(t Type, obj T) {
	if old, ok := s.Get(obj.GetNamespace(), obj.GetName()); ok && old.GetUID() != obj.GetUID() {
		if t == Deleted {
			return
		}
		s.Apply(Deleted, old)
	}
	old, existed := s.write(t, obj)
	for _, h := range s.handlers {
		switch {
		case t == Deleted && existed && h.OnDelete != nil:
			h.OnDelete(obj)
		case t != Deleted && existed && h.OnUpdate != nil:
			h.OnUpdate(old, obj)
		case t != Deleted && !existed && h.OnAdd != nil:
			h.OnAdd(obj)
		}
	}
}

func (s *Store[T]) write(t Type, obj T) (old T, existed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(obj)
	old, existed = s.objects[key]
	if existed {
		s.unindex(key, old)
	}
	if t == Deleted {
		delete(s.objects, key)
		return old, existed
	}
	s.objects[key] = obj
	for name, f := range s.indexers {
		for _, value := range f(obj) {
			if s.indices[name][value] == nil {
				s.indices[name][value] = sets.Set[types.NamespacedName]{}
			}
			s.indices[name][value].Insert(key)
		}
	}
	return old, existed
}

func (s *Store[T]) unindex(key types.NamespacedName, old T) {
	for name, f := range s.indexers {
		for _, value := range f(old) {
			keys := s.indices[name][value]
			delete(keys, key)
			if len(keys) == 0 {
				delete(s.indices[name], value)
			}
		}
	}
}
