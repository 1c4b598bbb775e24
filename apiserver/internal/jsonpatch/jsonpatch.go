// Package jsonpatch changes objects by JSON patches (RFC 6902) that users, webhooks
// and policies make, within bounds of work and memory, and without panics.
//
// Whoever has such a patch calls it; what a refusal means is for them to say. Other
// kinds of patches are package handlers' own.
package jsonpatch

import (
	"errors"

	library "gopkg.in/evanphx/json-patch.v4"
)

// MaxOperations bounds the work of one patch; upstream's. Whoever makes a patch is to be
// told what is too many, so Apply does not count.
const MaxOperations = 10000

// A patch that copies what it copied doubles with each operation; this is how
// many bytes all copies of one patch may have, upstream's. The library keeps
// its bound in a variable of its own.
func init() { library.AccumulatedCopySizeLimit = 3 << 20 }

// Apply makes an error of the library's panics: it has some where an
// operation on the whole object (path "") has no value.
func Apply(patch library.Patch, before []byte) (after []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("an operation does not apply: its value is missing")
		}
	}()
	return patch.Apply(before)
}
