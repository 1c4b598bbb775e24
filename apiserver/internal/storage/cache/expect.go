package cache

import (
	"bytes"
	"sync"

	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// The writer of an object has it in decoded form, and may announce what
// selectors and followers inside the server will look at; then the change that
// comes back from etcd needs no decoding. It is a hint only: a change that is
// not the expected one is decoded.

// maxExpected bounds the hints; beyond it new ones are not taken.
const maxExpected = 1024

// Hint is what is known about an object that is about to be written.
type Hint struct {
	Labels map[string]string
	Fields fields.Set
	// Object is what was encoded, or nil. It is shared from now on and must not be
	// changed.
	Object core.Object
}

// expectations are hints by key.
type expectations struct {
	mu    sync.Mutex
	byKey map[string]expectation
}

type expectation struct {
	value  []byte // as written, without resourceVersion
	index  *index
	object core.Object
}

// Expect announces value, which is about to be written to key. Unexpect takes
// that back if the write failed.
func (c *Cache) Expect(key string, value []byte, hint Hint) {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	if c.expected.byKey == nil {
		c.expected.byKey = map[string]expectation{}
	}
	if len(c.expected.byKey) < maxExpected {
		c.expected.byKey[key] = expectation{value, &index{labels: pairsOf(hint.Labels), fields: pairsOf(hint.Fields)}, hint.Object}
	}
}

// Unexpect takes back what Expect announced.
func (c *Cache) Unexpect(key string) {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	delete(c.expected.byKey, key)
}

// clear drops all hints: their changes may have been part of a list.
func (x *expectations) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.byKey)
}

// match returns the hint for an object that comes back from etcd, if it is
// the expected one.
func (x *expectations) match(o storage.Object) (hint expectation, expected bool) {
	x.mu.Lock()
	hint, expected = x.byKey[o.Key]
	delete(x.byKey, o.Key)
	x.mu.Unlock()
	if !expected || !bytes.Equal(o.Value, hint.value) {
		return expectation{}, false
	}
	return hint, true
}
