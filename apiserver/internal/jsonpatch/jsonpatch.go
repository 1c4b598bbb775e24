// Package jsonpatch applies JSON patches (RFC 6902) of users, webhooks and
// policies, within bounds of work and memory, and without panics.
//
// Its callers decide what a refusal means. Package handlers applies the other kinds
// of patches.
package jsonpatch

import (
	"errors"

	library "gopkg.in/evanphx/json-patch.v4"
)

// MaxOperations bounds the work of one patch; upstream's. Callers check it and word the
// refusal, so Apply does not count.
const MaxOperations = 10000

// A patch that copies its own copies doubles with each operation; this bounds
// the bytes of all copies of one patch; upstream's. The library keeps the bound
// in a package variable.
func init() { library.AccumulatedCopySizeLimit = 3 << 20 }

// Apply turns the library's panics into errors: there are some if an operation
// on the whole object (path "") has no value.
func Apply(patch library.Patch, before []byte) (after []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("an operation does not apply: its value is missing")
		}
	}()
	return patch.Apply(before)
}
