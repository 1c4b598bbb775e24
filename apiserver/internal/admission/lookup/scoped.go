package lookup

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

const (
	// emptyTTL is how long a namespace without objects is not looked up again,
	// unless one shows up.
	emptyTTL = 30 * time.Second
	// maxEmpty bounds the number of namespaces known to have none.
	maxEmpty = 8192
)

// Scoped finds all objects of one resource in a namespace: the rules that apply
// there. It follows them, so that a look-up costs next to nothing. A namespace
// without any is looked up in the store now and then, since its first rule may
// just have been created. It is safe for concurrent use.
type Scoped[T core.Object] struct {
	source   informer.Source
	informer *informer.Informer[T]
	clock    clock.PassiveClock

	mu    sync.Mutex
	empty map[string]time.Time // until when
}

// NewScoped returns a Scoped that follows source while Run runs.
func NewScoped[T core.Object](source informer.Source, clock clock.Clock, logger *zap.Logger) *Scoped[T] {
	return &Scoped[T]{
		source: source, clock: clock, empty: map[string]time.Time{},
		informer: informer.New(source, func(obj core.Object) T { return obj.(T) },
			informer.Options[T]{Index: func(obj T) string { return obj.GetNamespace() }}, clock, logger),
	}
}

// Run follows the resource until ctx ends.
func (s *Scoped[T]) Run(ctx context.Context) error { return s.informer.Run(ctx) }

// Synced is closed when all stored objects have been read.
func (s *Scoped[T]) Synced() <-chan struct{} { return s.informer.Synced() }

// In returns the objects of a namespace, in no order.
func (s *Scoped[T]) In(ctx context.Context, namespace string) ([]T, error) {
	if found := s.informer.ByIndex(namespace); len(found) > 0 {
		return found, nil
	}
	now := s.clock.Now()
	s.mu.Lock()
	until, known := s.empty[namespace]
	s.mu.Unlock()
	if known && now.Before(until) {
		return nil, nil
	}
	list, err := s.source.List(ctx, namespace, registry.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		s.rememberEmpty(namespace, now.Add(emptyTTL))
		return nil, nil
	}
	found := make([]T, 0, len(list.Items))
	for _, item := range list.Items {
		obj, err := s.source.Decode(item)
		if err != nil {
			return nil, err
		}
		found = append(found, obj.(T))
	}
	return found, nil
}

func (s *Scoped[T]) rememberEmpty(namespace string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.empty) >= maxEmpty {
		clear(s.empty)
	}
	s.empty[namespace] = until
}

// Forget makes the next look-up read the store: a rule is about to be created
// in the namespace.
func (s *Scoped[T]) Forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.empty, namespace)
}
