package endpointreconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/storage"
)

// leaseDuration is for how long a server that no longer renews its lease is still among
// the endpoints; upstream's.
const leaseDuration = 15 * time.Second

// LeasePrefix is where, below the prefix of all keys, the leases are; upstream's.
const LeasePrefix = "/masterleases/"

// Storage is what holds the leases.
type Storage interface {
	storage.Writer
	Get(ctx context.Context, key string) (storage.Object, error)
	List(ctx context.Context, prefix, after string, limit int64, revision int64) ([]storage.Object, int64, int64, error)
}

// masterLeases are the addresses of the servers, under upstream's keys and in its form: each
// an Endpoints object that is not of the API, and that etcd drops unless it is renewed.
// kube-apiserver writes and reads only the IP address in it.
type masterLeases struct {
	store  Storage
	prefix string
}

func (m masterLeases) key(address netip.AddrPort) string { return m.prefix + address.Addr().String() }

// renew stores the address for another leaseDuration. Of servers that share an address, the one
// with the lowest port does.
func (m masterLeases) renew(ctx context.Context, address netip.AddrPort) error {
	lease := newEndpoints([]netip.AddrPort{address})
	lease.APIVersion, lease.Kind, lease.Namespace, lease.Labels = "v1", "Endpoints", "", nil
	value, err := json.Marshal(lease)
	if err != nil {
		return fmt.Errorf("encode the address of this server: %w", err)
	}
	held, err := m.store.Get(ctx, m.key(address))
	switch {
	case err == nil || errors.Is(err, storage.ErrUnreadable):
		if at, err := addresses(held, address.Port()); err == nil && len(at) == 1 && at[0].Port() < address.Port() {
			return nil
		}
		_, err = m.store.Update(ctx, held.Key, held.Revision, value, leaseDuration)
	case errors.Is(err, storage.ErrNotFound):
		_, err = m.store.Create(ctx, m.key(address), value, leaseDuration)
	}
	if err != nil {
		return fmt.Errorf("renew the address of this server: %w", err)
	}
	return nil
}

// remove drops the address at once, unless it is that of another server.
func (m masterLeases) remove(ctx context.Context, address netip.AddrPort) error {
	held, err := m.store.Get(ctx, m.key(address))
	if err == nil || errors.Is(err, storage.ErrUnreadable) {
		if at, err := addresses(held, address.Port()); err == nil && !slices.Contains(at, address) {
			return nil
		}
		_, err = m.store.Delete(ctx, held.Key, held.Revision)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("remove the address of this server: %w", err)
	}
	return nil
}

// list returns the addresses that are there; those without a port get the given one.
func (m masterLeases) list(ctx context.Context, port uint16) (all []netip.AddrPort, err error) {
	leases, _, _, err := m.store.List(ctx, m.prefix, "", 0, 0)
	if err = errors.Join(err, storage.Unreadable(leases)); err != nil {
		return nil, fmt.Errorf("list the addresses of servers: %w", err)
	}
	for _, lease := range leases {
		of, err := addresses(lease, port)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// addresses are those in a lease. If it has no port, as kube-apiserver's, they get the given
// one.
func addresses(lease storage.Object, port uint16) (all []netip.AddrPort, err error) {
	var e corev1.Endpoints //nolint:staticcheck // upstream's form
	if err := json.Unmarshal(lease.Value, &e); err != nil {
		return nil, fmt.Errorf("address of a server, %s: %w", lease.Key, err)
	}
	for _, subset := range e.Subsets {
		at := port
		if len(subset.Ports) > 0 {
			at = uint16(subset.Ports[0].Port)
		}
		for _, a := range subset.Addresses {
			addr, err := netip.ParseAddr(a.IP)
			if err != nil {
				return nil, fmt.Errorf("address of a server, %s: %w", lease.Key, err)
			}
			all = append(all, netip.AddrPortFrom(addr, at))
		}
	}
	return all, nil
}
