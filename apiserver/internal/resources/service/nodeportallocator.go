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
	// errOthersFaster: each attempt met another server's change.
	errOthersFaster = errors.New("others were always faster")
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
	// services are all services as they are stored now.
	services func(ctx context.Context) ([]*corev1.Service, error)
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
		stored, bits, err := n.read(ctx)
		if err != nil {
			return err
		}
		if err := f(bits); err != nil || dry {
			return err
		}
		if err = n.write(ctx, stored, bits); err == nil || !lostRace(err) {
			return err
		}
	}
	return errOthersFaster
}

// storedPorts is what the bitmap was read from.
type storedPorts struct {
	set      corev1.RangeAllocation
	revision int64 // 0 if nothing is stored
}

// read returns the stored bitmap, and what it was read from. One that is for another range, or
// missing, says nothing about the ports of earlier services: they count, too.
func (n *nodePortAllocator) read(ctx context.Context) (stored storedPorts, bits *big.Int, err error) {
	set := corev1.RangeAllocation{TypeMeta: metav1.TypeMeta{Kind: "RangeAllocation", APIVersion: "v1"}}
	object, err := n.storage.Get(ctx, n.key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return stored, nil, err
	default:
		if err := json.Unmarshal(object.Value, &set); err != nil {
			return stored, nil, fmt.Errorf("decode %s: %w", n.key, err)
		}
		stored.revision = object.Revision
	}
	stored.set = set
	bits = new(big.Int).SetBytes(set.Data)
	if set.Range == n.ports.String() {
		return stored, bits, nil
	}
	if bits, err = n.fromServices(ctx); err != nil {
		return stored, nil, err
	}
	if other, err := utilnet.ParsePortRange(set.Range); err == nil { // for services that are not stored yet
		n.add(bits, new(big.Int).SetBytes(set.Data), other.Base)
	}
	return stored, bits, nil
}

// add adds the ports of this range that another range's bitmap has.
func (n *nodePortAllocator) add(to, bits *big.Int, base int) {
	for offset := range bits.BitLen() {
		if port := base + offset; bits.Bit(offset) == 1 && n.ports.Contains(port) {
			to.SetBit(to, port-n.ports.Base, 1)
		}
	}
}

// fromServices is the bitmap of the ports that services have.
func (n *nodePortAllocator) fromServices(ctx context.Context) (*big.Int, error) {
	services, err := n.services(ctx)
	if err != nil {
		return nil, fmt.Errorf("node ports in use: %w", err)
	}
	bits := new(big.Int)
	for _, service := range services {
		for _, port := range nodePortsInUse(service) {
			if port != 0 && n.ports.Contains(int(port)) {
				bits.SetBit(bits, int(port)-n.ports.Base, 1)
			}
		}
	}
	return bits, nil
}

// write stores the bitmap over the one that was read.
func (n *nodePortAllocator) write(ctx context.Context, stored storedPorts, bits *big.Int) error {
	set := stored.set
	set.ResourceVersion, set.Range, set.Data = "", n.ports.String(), bits.Bytes()
	value, err := json.Marshal(&set)
	if err != nil {
		return err
	}
	if stored.revision == 0 {
		_, err = n.storage.Create(ctx, n.key, value, 0)
	} else {
		_, err = n.storage.Update(ctx, n.key, stored.revision, value, 0)
	}
	if err == nil {
		n.allocated.Store(int64(countBits(bits)))
	}
	return err
}

// lostRace reports whether another server changed the bitmap since it was read.
func lostRace(err error) bool {
	return errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound)
}

// countBits is the number of set bits.
func countBits(set *big.Int) (n int) {
	for _, word := range set.Bits() {
		n += bits.OnesCount(uint(word))
	}
	return n
}
