package handlers

import (
	"container/list"
	"errors"
	"sync"
	"unsafe"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
)

// mostEncoded is how many bytes of encodings are held: those of 20,000 pods of usual size.
// perEncoding is what each of them takes besides its text.
const (
	mostEncoded = 64 << 20
	perEncoding = 512
)

// Encodings holds what stored objects, and their metadata, are in protobuf, so that an object is
// converted once, and not for each list that it is in and each watcher that sees it change. Those
// that were not used for longest go first. It is safe for concurrent use.
type Encodings struct {
	most int

	mu    sync.Mutex
	held  map[encodingKey]*list.Element // of *encoding
	order *list.List                    // the last used ones first
	size  int
}

// encodingKey identifies a stored object by its bytes, which are never changed. They can be freed;
// a weak pointer never equals one to others that come to lie in the same place. Nothing of a request
// is in it: a form's texts are parts of headers, which would be held, too.
type encodingKey struct {
	stored   weak.Pointer[byte]
	kind     schema.GroupVersionKind
	metadata bool // alone, and not the whole object
}

type encoding struct {
	key  encodingKey
	once sync.Once
	text []byte
	err  error
	// counted is its part of size; only with the lock of its Encodings.
	counted int
}

// NewEncodings returns an empty one.
func NewEncodings() *Encodings { return newEncodings(mostEncoded) }

func newEncodings(most int) *Encodings {
	return &Encodings{most: most, held: map[encodingKey]*list.Element{}, order: list.New()}
}

// errNotEncoded is what those see who waited for an encoding that panicked.
var errNotEncoded = errors.New("the object could not be encoded")

// of returns the object as a protobuf message, which encode makes if it is not held; of the form, only
// whether it is the metadata's makes a difference. The text is shared and must not be changed. All who
// ask for it at the same time share one call.
func (e *Encodings) of(stored registry.Encoded, kind schema.GroupVersionKind, f form, encode func() ([]byte, error)) ([]byte, error) {
	found := e.find(encodingKey{weak.Make(unsafe.SliceData(stored.JSON)), kind, f.as == asMetadata})
	found.once.Do(func() {
		found.err = errNotEncoded
		defer e.settle(found)
		found.text, found.err = encode()
	})
	return found.text, found.err
}

// find returns what is held, as the last used one; one that is yet to be made, if nothing is.
func (e *Encodings) find(key encodingKey) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.held[key]; at != nil {
		e.order.MoveToFront(at)
		return at.Value.(*encoding)
	}
	made := &encoding{key: key}
	e.held[key] = e.order.PushFront(made)
	return made
}

// settle counts an encoding that has been made, or forgets one that could not be.
func (e *Encodings) settle(made *encoding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.held[made.key]
	if at == nil || at.Value != made {
		return
	}
	if made.err != nil {
		e.forget(at)
		return
	}
	made.counted = len(made.text) + perEncoding
	e.size += made.counted
	for e.size > e.most {
		e.forget(e.order.Back())
	}
}

func (e *Encodings) forget(at *list.Element) {
	old := e.order.Remove(at).(*encoding)
	delete(e.held, old.key)
	e.size -= old.counted
}
