package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"kctl/apiserver/internal/storage"
)

var (
	errPortTaken = errors.New("provided port is already allocated")
	errNoPorts   = errors.New("range is full")
)

// portAttempts bounds how often one allocation starts over because another
// server was faster.
const portAttempts = 16

// nodePortAllocator assigns node ports to services. The allocation is one stored
// bitmap, as in upstream, and is written only over the revision that was read.
type nodePortAllocator struct {
	storage storage.Interface
	key     string
	ports   utilnet.PortRange
	metrics *metrics
	// allocated is how many were in use when this server last changed the bitmap; -1 before
	// that.
	allocated atomic.Int64
}

// allocate assigns the requested port, or any if it is 0.
func (n *nodePortAllocator) allocate(ctx context.Context, wanted int32, dry bool) (int32, error) {
	if wanted != 0 && !n.ports.Contains(int(wanted)) {
		if dry { // upstream does not ask then
			return wanted, nil
		}
		return 0, fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", n.ports.String())
	}
	given := wanted
	err := n.change(ctx, dry, func(bits *big.Int) error {
		if wanted == 0 {
			offset, ok := findFreeBit(bits, n.ports.Size)
			if !ok {
				return errNoPorts
			}
			given = int32(n.ports.Base + offset)
		}
		offset := int(given) - n.ports.Base
		if bits.Bit(offset) == 1 {
			return errPortTaken
		}
		bits.SetBit(bits, offset, 1)
		return nil
	})
	if !dry {
		count(n.metrics.ports, n.metrics.portErrors, err, scopeOf(wanted != 0))
	}
	return given, err
}

func findFreeBit(bits *big.Int, size int) (offset int, ok bool) {
	offset = rand.IntN(size)
	for range size {
		if bits.Bit(offset) == 0 {
			return offset, true
		}
		offset = (offset + 1) % size
	}
	return 0, false
}

// release releases a port.
func (n *nodePortAllocator) release(ctx context.Context, port int32) error {
	if !n.ports.Contains(int(port)) {
		return nil
	}
	err := n.change(ctx, false, func(bits *big.Int) error {
		bits.SetBit(bits, int(port)-n.ports.Base, 0)
		return nil
	})
	if err != nil {
		return fmt.Errorf("release node port %d: %w", port, err)
	}
	return nil
}

// change makes one change to the stored bitmap.
func (n *nodePortAllocator) change(ctx context.Context, dry bool, f func(bits *big.Int) error) error {
	for range portAttempts {
		stored, err := n.storage.Get(ctx, n.key)
		missing := errors.Is(err, storage.ErrNotFound)
		if err != nil && !missing {
			return err
		}
		set := corev1.RangeAllocation{TypeMeta: metav1.TypeMeta{Kind: "RangeAllocation", APIVersion: "v1"}}
		if !missing {
			if err := json.Unmarshal(stored.Value, &set); err != nil {
				return fmt.Errorf("decode %s: %w", n.key, err)
			}
		}
		set.ResourceVersion = ""
		bits := new(big.Int)
		if set.Range == n.ports.String() { // bits of another range mean other ports
			bits.SetBytes(set.Data)
		}
		if err := f(bits); err != nil || dry {
			return err
		}
		set.Range, set.Data = n.ports.String(), bits.Bytes()
		value, err := json.Marshal(&set)
		if err != nil {
			return err
		}
		if missing {
			_, err = n.storage.Create(ctx, n.key, value, 0)
		} else {
			_, err = n.storage.Update(ctx, n.key, stored.Revision, value, 0)
		}
		if err == nil {
			n.allocated.Store(int64(countBits(bits)))
		}
		if !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrExists) && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return errors.New("others were always faster")
}

// countBits is the number of set bits.
func countBits(set *big.Int) (n int) {
	for _, word := range set.Bits() {
		n += bits.OnesCount(uint(word))
	}
	return n
}
