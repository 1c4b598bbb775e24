package encrypt

import (
	"context"
	"crypto/aes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// What the sealed key stored with a value is (EncryptedDEKSourceType): an
// AES-GCM key, as before Kubernetes 1.28, or a seed from which keys are
// derived.
const (
	sourceKey  = 0
	sourceSeed = 1
)

const (
	seedSize = 32
	// infoSize is the size of the random number from which, with the seed, a value's key is
	// derived.
	infoSize = 32
)

// derivedKeySealer seals each value with a key of its own, derived from the seed and a
// random number that is stored before the text: HKDF-SHA256 (expand only), then
// AES-GCM.
type derivedKeySealer []byte

func (d derivedKeySealer) cipherFor(info []byte) (gcm, error) {
	key, err := hkdf.Expand(sha256.New, d, string(info), 32)
	if err != nil {
		return gcm{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return gcm{}, err
	}
	return newGCM(block)
}

func (d derivedKeySealer) seal(ctx context.Context, place, plain []byte) ([]byte, error) {
	info := make([]byte, infoSize)
	_, _ = rand.Read(info) // never fails
	g, err := d.cipherFor(info)
	if err != nil {
		return nil, err
	}
	sealed, err := g.seal(ctx, place, plain)
	return append(info, sealed...), err
}

func (d derivedKeySealer) open(ctx context.Context, place, sealed []byte) ([]byte, bool, error) {
	if len(sealed) < infoSize {
		return nil, false, errNotOpened
	}
	g, err := d.cipherFor(sealed[:infoSize])
	if err != nil {
		return nil, false, err
	}
	return g.open(ctx, place, sealed[infoSize:])
}

func (s *seed) sealerOf(secret []byte) (sealer, error) {
	if s.source == sourceSeed {
		if len(secret) != seedSize {
			return nil, fmt.Errorf("the service opened a seed of %d bytes, it has %d", len(secret), seedSize)
		}
		return derivedKeySealer(secret), nil
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return newGCM(block)
}

// The fields of EncryptedObject, the message as which a value is stored.
const (
	fieldData        = 1
	fieldKeyID       = 2
	fieldSource      = 3
	fieldAnnotations = 4
	fieldSourceType  = 5
)

// envelope is what is stored: the sealed value, and what is needed to open it.
func (s *seed) envelope(sealed []byte) []byte {
	field := func(b []byte, number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
	}
	out := field(make([]byte, 0, len(sealed)+len(s.sealed)+len(s.keyID)+64), fieldData, sealed)
	out = field(out, fieldKeyID, []byte(s.keyID))
	out = field(out, fieldSource, s.sealed)
	for name, value := range s.annotations {
		out = field(out, fieldAnnotations, field(field(nil, 1, []byte(name)), 2, value))
	}
	return protowire.AppendVarint(protowire.AppendTag(out, fieldSourceType, protowire.VarintType), uint64(s.source))
}

var errEnvelope = errors.New("the stored value is not a KMS v2 envelope")

// parseEnvelope parses an envelope, skipping unknown fields.
func parseEnvelope(stored []byte) (s *seed, sealed []byte, err error) {
	s = &seed{}
	err = eachField(stored, func(number protowire.Number, value []byte, varint uint64) error {
		switch number {
		case fieldData:
			sealed = value
		case fieldKeyID:
			s.keyID = string(value)
		case fieldSource:
			s.sealed = value
		case fieldAnnotations:
			return s.annotate(value)
		case fieldSourceType:
			s.source = int32(varint)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if s.source != sourceKey && s.source != sourceSeed {
		return nil, nil, fmt.Errorf("the key stored with the value has the unknown type %d", s.source)
	}
	return s, sealed, s.check()
}

func (s *seed) annotate(entry []byte) error {
	var name string
	var content []byte
	err := eachField(entry, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case 1:
			name = string(value)
		case 2:
			content = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.annotations == nil {
		s.annotations = map[string][]byte{}
	}
	s.annotations[name] = content
	return nil
}

// eachField calls f for each field of a message whose type is bytes or a number.
func eachField(message []byte, f func(number protowire.Number, value []byte, varint uint64) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errEnvelope
		}
		message = message[n:]
		var value []byte
		var varint uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errEnvelope
		}
		message = message[n:]
		if err := f(number, value, varint); err != nil {
			return err
		}
	}
	return nil
}
