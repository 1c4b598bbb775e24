package endpointreconciler

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
)

const renewInterval = 5 * time.Second

// Stores are what a Reconciler reads and writes.
type Stores struct {
	// Leases has the servers' addresses, in keys that begin with LeasePrefix.
	Leases      Storage
	LeasePrefix string
	Endpoints   *registry.Store[*corev1.Endpoints] //nolint:staticcheck // old clients still use it
	Slices      *registry.Store[*discoveryv1.EndpointSlice]
}

// Reconciler publishes one API server to the cluster.
type Reconciler struct {
	stores  Stores
	leases  masterLeases
	address netip.AddrPort
	clock   clock.WithTicker
	logger  *zap.Logger
}

// New is the keeper of the server that is reached at address.
func New(stores Stores, address netip.AddrPort, clock clock.WithTicker, logger *zap.Logger) *Reconciler {
	return &Reconciler{stores: stores, leases: masterLeases{stores.Leases, stores.LeasePrefix}, address: address, clock: clock, logger: logger}
}

// Run keeps the server among the endpoints until ctx ends, and then removes it,
// so that new connections go to another one.
func (r *Reconciler) Run(ctx context.Context) error {
	ticker := r.clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		if err := r.renewAndPublish(ctx); err != nil && ctx.Err() == nil {
			r.logger.Warn("the endpoints of service kubernetes may be out of date, trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return r.releaseLease(context.WithoutCancel(ctx))
		case <-ticker.C():
		}
	}
}

// releaseLease gives up the lease. If the storage is already gone, the lease expires by itself.
func (r *Reconciler) releaseLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewInterval)
	defer cancel()
	err := r.leases.remove(ctx, r.address)
	if err == nil {
		err = r.publishEndpoints(ctx)
	}
	if err != nil {
		r.logger.Info("this server is among the endpoints of service kubernetes until its lease ends", zap.Error(err))
	}
	return nil
}

func (r *Reconciler) renewAndPublish(ctx context.Context) error {
	if err := r.leases.renew(ctx, r.address); err != nil {
		return err
	}
	return r.publishEndpoints(ctx)
}

// publishEndpoints writes the addresses of live servers.
func (r *Reconciler) publishEndpoints(ctx context.Context) error {
	alive, err := r.liveServers(ctx)
	if err != nil {
		return err
	}
	//nolint:staticcheck // old clients still use it
	if err := createOrUpdate(ctx, r.stores.Endpoints, newEndpoints(alive), func(has, want *corev1.Endpoints) {
		has.Labels, has.Subsets = labels.Merge(has.Labels, want.Labels), want.Subsets
	}); err != nil {
		return fmt.Errorf("endpoints of service %s: %w", service.ServerService, err)
	}
	if err := createOrUpdate(ctx, r.stores.Slices, r.newSlice(alive), func(has, want *discoveryv1.EndpointSlice) {
		has.Labels, has.Endpoints, has.Ports = labels.Merge(has.Labels, want.Labels), want.Endpoints, want.Ports
	}); err != nil {
		return fmt.Errorf("endpoint slice of service %s: %w", service.ServerService, err)
	}
	return nil
}

// liveServers returns the addresses of all servers whose leases last. A service has one
// port, so servers on another port than the first one's are left out.
func (r *Reconciler) liveServers(ctx context.Context) ([]netip.AddrPort, error) {
	leased, err := r.leases.list(ctx, r.address.Port())
	if err != nil {
		return nil, err
	}
	alive := slices.DeleteFunc(leased, func(a netip.AddrPort) bool { return a.Addr().Is4() != r.address.Addr().Is4() })
	slices.SortFunc(alive, netip.AddrPort.Compare)
	return slices.DeleteFunc(alive, func(a netip.AddrPort) bool { return a.Port() != alive[0].Port() }), nil
}
