package registry

import (
	"context"
	"errors"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// basis is the state of an object that an update or a deletion starts from. It comes
// from the cache first, and is fresh once it came from etcd.
type basis[T core.Object] struct {
	store *Store[T]
	key   string
	base  storage.Object
	fresh bool
}

// read takes the state that the cache has, or etcd where it has none.
func (b *basis[T]) read(ctx context.Context) error {
	if e, ok := b.store.cache.Get(b.key); ok {
		b.base = storage.Object{Key: e.Key, Value: e.Value, Revision: e.Revision}
		return nil
	}
	_, err := b.reread(ctx)
	return err
}

// reread takes the state that etcd has, and tells whether it is another.
func (b *basis[T]) reread(ctx context.Context) (changed bool, err error) {
	object, err := b.store.storage.Get(ctx, b.key)
	if err != nil {
		return false, err
	}
	changed = object.Revision != b.base.Revision
	b.base, b.fresh = object, true
	return changed, nil
}

// conflicted takes the state that a guarded write brings where it fails by a conflict.
func (b *basis[T]) conflicted(object storage.Object, err error) {
	if errors.Is(err, storage.ErrConflict) {
		b.base, b.fresh = object, true
	}
}
