package handlers

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/derived"
	"kctl/apiserver/internal/registry"
)

// mostEncoded is how many bytes of encodings are held: those of 20,000 pods of usual size.
const mostEncoded = 64 << 20

// Encodings holds what stored objects, and their metadata, are in protobuf. It is safe for concurrent use.
type Encodings struct {
	texts *derived.Texts[encodingKind]
}

// encodingKind is what an object was made into. Nothing of a request is in it: a form's texts are
// parts of headers, which would be held, too.
type encodingKind struct {
	kind     schema.GroupVersionKind
	metadata bool // alone, and not the whole object
}

// NewEncodings returns an empty one.
func NewEncodings() *Encodings {
	return &Encodings{texts: derived.New[encodingKind](mostEncoded)}
}

// errNotEncoded is what those see who waited for an encoding that panicked.
var errNotEncoded = errors.New("the object could not be encoded")

// of returns the object as a protobuf message, which encode makes if it is not held; of the form, only
// whether it is the metadata's makes a difference. The text is shared and must not be changed. All who
// ask for it at the same time share one call.
func (e *Encodings) of(stored registry.Encoded, kind schema.GroupVersionKind, f form, encode func() ([]byte, error)) ([]byte, error) {
	found, settle := e.texts.Claim(stored.JSON, encodingKind{kind, f.as == asMetadata})
	if settle == nil {
		return found.Wait(context.Background()) // for as long as it takes to encode
	}
	text, err := []byte(nil), errNotEncoded
	defer func() { settle(text, err) }()
	text, err = encode()
	return text, err
}
