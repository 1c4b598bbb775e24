package lookup

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// maxDecoded bounds, in bytes as they are encoded, the decoded objects that are cached. Decoded,
// they take several times as much.
const maxDecoded = 2 << 20

// Source is the resource to look in: a registry.Resource.
type Source interface {
	Get(ctx context.Context, namespace, name, resourceVersion string) (registry.Encoded, error)
	Decode(e registry.Encoded) (core.Object, error)
}

// Objects finds objects of one resource. It is safe for concurrent use.
type Objects[T core.Object] struct {
	source Source

	mu      sync.Mutex
	decoded map[key]decodedEntry[T]
	size    int // of all decoded ones, as maxDecoded counts
}

type key struct{ namespace, name string }

type decodedEntry[T core.Object] struct {
	revision int64
	size     int
	obj      T
}

// New returns Objects for source.
func New[T core.Object](source Source) *Objects[T] {
	return &Objects[T]{source: source, decoded: map[key]decodedEntry[T]{}}
}

// Get returns the object from the cache or, if it is not there, from the store:
// it may just have been created.
func (o *Objects[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	encoded, err := o.source.Get(ctx, namespace, name, "0")
	if err != nil && apierrors.IsNotFound(err) { // which takes memory to look at nil
		return o.Live(ctx, namespace, name)
	}
	return o.decode(key{namespace, name}, encoded, err)
}

// Live returns the object as it is stored now.
func (o *Objects[T]) Live(ctx context.Context, namespace, name string) (T, error) {
	encoded, err := o.source.Get(ctx, namespace, name, "")
	return o.decode(key{namespace, name}, encoded, err)
}

func (o *Objects[T]) decode(k key, encoded registry.Encoded, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	o.mu.Lock()
	known, ok := o.decoded[k]
	o.mu.Unlock()
	if ok && known.revision == encoded.Revision {
		return known.obj, nil
	}
	decoded, err := o.source.Decode(encoded)
	if err != nil {
		return none, err
	}
	entry := decodedEntry[T]{revision: encoded.Revision, size: len(encoded.JSON), obj: decoded.(T)}
	o.keep(k, entry)
	return entry.obj, nil
}

func (o *Objects[T]) keep(k key, entry decodedEntry[T]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += entry.size - o.decoded[k].size
	if o.size > maxDecoded {
		clear(o.decoded)
		o.size = entry.size
	}
	o.decoded[k] = entry
}
