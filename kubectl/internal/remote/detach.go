package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
)

// DetachKeys are the keys by which a user leaves a container without ending it, unless told
// otherwise. They are those of other tools.
const DetachKeys = "ctrl-p,ctrl-q"

// ErrDetached says that the user left with the detach keys.
var ErrDetached = errors.New("detached")

// controls are the keys that can be pressed with ctrl, in the order of their codes.
const controls = `@abcdefghijklmnopqrstuvwxyz[\]^_`

// ParseKeys are the codes of keys, which commas separate: single characters, ctrl-X and DEL.
// An empty text means DetachKeys.
func ParseKeys(text string) ([]byte, error) {
	var codes []byte
	for key := range strings.SplitSeq(cmp.Or(text, DetachKeys), ",") {
		letter, held := strings.CutPrefix(key, "ctrl-")
		switch code := strings.Index(controls, letter); {
		case len(key) == 1:
			codes = append(codes, key[0])
		case key == "DEL":
			codes = append(codes, 127)
		case held && len(letter) == 1 && code >= 0:
			codes = append(codes, byte(code))
		default:
			return nil, fmt.Errorf(
				"could not bind detach keys: unknown key %q: keys are single characters, ctrl-a to ctrl-z, ctrl-@, ctrl-[, ctrl-\\, "+
					"ctrl-], ctrl-^, ctrl-_ and DEL", key)
		}
	}
	return codes, nil
}

// detachable is an input that ends when the keys are typed. They are kept from the
// container, and so is the beginning of them until another key follows.
type detachable struct {
	in      io.Reader
	keys    []byte
	typed   int    // how many of the keys were typed just now
	waiting []byte // what was read and is not of them
	err     error  // what comes after it
	left    atomic.Bool
}

func (d *detachable) Read(p []byte) (int, error) {
	for len(d.waiting) == 0 && d.err == nil {
		n, err := d.in.Read(p)
		d.err = err
		for _, b := range p[:n] {
			typed := append(bytes.Clone(d.keys[:d.typed]), b)
			for !bytes.HasPrefix(d.keys, typed) {
				d.waiting, typed = append(d.waiting, typed[0]), typed[1:]
			}
			if d.typed = len(typed); d.typed == len(d.keys) {
				d.typed, d.err = 0, io.EOF
				d.left.Store(true)
				break
			}
		}
		if d.err != nil {
			d.waiting, d.typed = append(d.waiting, d.keys[:d.typed]...), 0
		}
	}
	n := copy(p, d.waiting)
	if d.waiting = d.waiting[n:]; n > 0 {
		return n, nil
	}
	return 0, d.err
}
