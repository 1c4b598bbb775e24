package encrypt

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"golang.org/x/crypto/nacl/secretbox"
)

// errNotOpened is all that is said about a value that does not open: details would
// only help an attacker.
var errNotOpened = errors.New("the value was not sealed with this key, or was changed since")

// sealer seals and opens values; place is the key under which they are stored.
// Sealers that can, bind a value to it, so that it opens nowhere else.
type sealer interface {
	seal(ctx context.Context, place, plain []byte) ([]byte, error)
	open(ctx context.Context, place, sealed []byte) (plain []byte, stale bool, err error)
}

func newLocal(kind string, secret string) (sealer, error) {
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return nil, errors.New("a secret is not base64")
	}
	if kind == "secretbox" {
		return secretboxSealer(key), nil
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if kind == "aescbc" {
		return cbc{block}, nil
	}
	return newGCM(block)
}

// gcm is AES-GCM with a random nonce before the text.
type gcm struct{ cipher.AEAD }

func newGCM(block cipher.Block) (gcm, error) {
	aead, err := cipher.NewGCM(block)
	return gcm{aead}, err
}

func (g gcm) seal(_ context.Context, place, plain []byte) ([]byte, error) {
	out := make([]byte, g.NonceSize(), g.NonceSize()+len(plain)+g.Overhead())
	_, _ = rand.Read(out) // never fails
	return g.Seal(out, out, plain, place), nil
}

func (g gcm) open(_ context.Context, place, sealed []byte) ([]byte, bool, error) {
	if len(sealed) < g.NonceSize() {
		return nil, false, errNotOpened
	}
	plain, err := g.Open(nil, sealed[:g.NonceSize()], sealed[g.NonceSize():], place)
	if err != nil {
		return nil, false, errNotOpened
	}
	return plain, false, nil
}

// cbc is AES-CBC with PKCS #7 padding and the initialization vector before the
// text. It does not protect the text from being changed; it is for reading
// values that were stored this way.
type cbc struct{ block cipher.Block }

func (c cbc) seal(_ context.Context, _, plain []byte) ([]byte, error) {
	padding := aes.BlockSize - len(plain)%aes.BlockSize
	out := make([]byte, aes.BlockSize+len(plain)+padding)
	vector, text := out[:aes.BlockSize], out[aes.BlockSize:]
	_, _ = rand.Read(vector) // never fails
	copy(text, plain)
	copy(text[len(plain):], bytes.Repeat([]byte{byte(padding)}, padding))
	cipher.NewCBCEncrypter(c.block, vector).CryptBlocks(text, text)
	return out, nil
}

func (c cbc) open(_ context.Context, _, sealed []byte) ([]byte, bool, error) {
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, false, errNotOpened
	}
	text := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(c.block, sealed[:aes.BlockSize]).CryptBlocks(text, sealed[aes.BlockSize:])
	padding := int(text[len(text)-1])
	if padding < 1 || padding > aes.BlockSize || !bytes.Equal(text[len(text)-padding:], bytes.Repeat([]byte{byte(padding)}, padding)) {
		return nil, false, errNotOpened
	}
	return text[:len(text)-padding], false, nil
}

// secretboxSealer is XSalsa20 and Poly1305 with a random nonce before the text.
type secretboxSealer []byte

const secretboxNonceSize = 24

func (b secretboxSealer) seal(_ context.Context, _, plain []byte) ([]byte, error) {
	var nonce [secretboxNonceSize]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return secretbox.Seal(nonce[:], plain, &nonce, (*[32]byte)(b)), nil
}

func (b secretboxSealer) open(_ context.Context, _, sealed []byte) ([]byte, bool, error) {
	if len(sealed) < secretboxNonceSize {
		return nil, false, errNotOpened
	}
	plain, ok := secretbox.Open(nil, sealed[secretboxNonceSize:], (*[secretboxNonceSize]byte)(sealed[:secretboxNonceSize]), (*[32]byte)(b))
	if !ok {
		return nil, false, errNotOpened
	}
	return plain, false, nil
}
