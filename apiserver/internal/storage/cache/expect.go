package cache

import (
	"bytes"
	"sync"

	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/storage"
	"kctl/proto/core"
)

// Whoever writes an object has it decoded, and may say what selectors will look
// at in it, and what followers inside the server will; the change that comes
// back from etcd then needs no decoding. It is a hint only: a change that is not
// the expected one is looked at by itself.

// maxExpected bounds the hints; beyond it new ones are not taken.
const maxExpected = 1024

// Hint is what is known of an object that is about to be written.
type Hint struct {
	Labels map[string]string
	Fields fields.Set
	// Object is what was encoded, or nil. It is shared from then on and must not
	// be changed.
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

// Expect tells what is known of value, which is about to be written to key.
// Unexpect takes it back where the write failed.
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

// Unexpect takes back what Expect told.
func (c *Cache) Unexpect(key string) {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	delete(c.expected.byKey, key)
}

// clear drops all hints: the changes that they are about may have been in a list.
func (x *expectations) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.byKey)
}

// recognise returns what was told in advance of an object that comes back, if it
// is what was expected.
func (x *expectations) recognise(o storage.Object) (hint expectation, expected bool) {
	x.mu.Lock()
	hint, expected = x.byKey[o.Key]
	delete(x.byKey, o.Key)
	x.mu.Unlock()
	if !expected || !bytes.Equal(o.Value, hint.value) {
		return expectation{}, false
	}
	return hint, true
}
