package cache

import (
	"bytes"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/storage/raw"
)

// Whoever writes an object has it decoded, and may say what selectors will look
// at in it; the change that comes back from etcd then needs no decoding. It is
// a hint only: a change that is not the expected one is looked at by itself.

// maxExpected bounds the hints; beyond it new ones are not taken.
const maxExpected = 1024

// expectations are hints by key.
type expectations struct {
	mu    sync.Mutex
	byKey map[string]expectation
}

type expectation struct {
	value []byte // as written, without resourceVersion
	index *index
}

// Expect tells what the labels and fields of value are, which is about to be
// written to key. Unexpect takes it back where the write failed.
func (c *Cache) Expect(key string, value []byte, labels map[string]string, set fields.Set) {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	if c.expected.byKey == nil {
		c.expected.byKey = map[string]expectation{}
	}
	if len(c.expected.byKey) < maxExpected {
		c.expected.byKey[key] = expectation{value, &index{labels: maps.Clone(labels), fields: set}}
	}
}

// Unexpect takes back what Expect told.
func (c *Cache) Unexpect(key string) {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	delete(c.expected.byKey, key)
}

// recognise gives e the index that was told in advance, if it is what was
// expected.
func (x *expectations) recognise(e *Entry) {
	x.mu.Lock()
	hint, ok := x.byKey[e.Key]
	delete(x.byKey, e.Key)
	x.mu.Unlock()
	if !ok {
		return
	}
	if value, err := raw.WithoutResourceVersion(e.Value); err == nil && bytes.Equal(value, hint.value) {
		e.index.Store(hint.index)
	}
}
