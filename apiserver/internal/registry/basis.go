package registry

import (
	"context"
	"errors"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// basis is the state of an object that an update or a deletion starts from. It first
// comes from the cache; it is fresh once it has been read from etcd.
type basis[T core.Object] struct {
	store *Store[T]
	key   string
	base  storage.Object
	fresh bool
}

// read takes the state from the cache, or from etcd if the cache has none.
func (b *basis[T]) read(ctx context.Context) error {
	if e, ok := b.store.cache.Get(b.key); ok {
		b.base = storage.Object{Key: e.Key, Value: e.Value, Revision: e.Revision}
		return nil
	}
	_, err := b.reread(ctx)
	return err
}

// reread takes the state from etcd and reports whether it differs.
func (b *basis[T]) reread(ctx context.Context) (changed bool, err error) {
	object, err := b.store.storage.Get(ctx, b.key)
	if err != nil {
		return false, err
	}
	changed = object.Revision != b.base.Revision
	b.base, b.fresh = object, true
	return changed, nil
}

// takeConflicting takes the current state, which a guarded write that fails with a conflict
// returns.
func (b *basis[T]) takeConflicting(object storage.Object, err error) {
	if errors.Is(err, storage.ErrConflict) {
		b.base, b.fresh = object, true
	}
}
