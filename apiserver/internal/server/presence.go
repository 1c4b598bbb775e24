package server

import (
	"context"
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/endpointreconciler"
	"kctl/apiserver/internal/identity/lease"
	"kctl/apiserver/internal/storage/measured"
)

// presence makes this server known in the cluster: by the service kubernetes, its
// endpoints, and a Lease.
type presence struct {
	*process
	objects  *objects
	endpoint *endpoint
}

// leaseResource is what metrics call the leases of servers; upstream's.
var leaseResource = schema.GroupResource{Resource: "apiServerIPInfo"}

// reconcileEndpoints keeps this server among the endpoints of the service kubernetes until
// it is told to stop, unless only this machine can reach it.
func (p *presence) reconcileEndpoints(ctx context.Context) error {
	if !wait(ctx, p.bootstrapped) {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.stopping, cancel)()
	var address netip.AddrPort
	found := p.options.Operation.EndpointReconciler == config.EndpointsByLease
	if found {
		address, found = p.endpoint.reachedAt()
	}
	if !found {
		<-ctx.Done()
		return nil
	}
	return endpointreconciler.New(endpointreconciler.Stores{
		Leases:      measured.Of(leaseResource, p.objects.database.backend.Storage),
		LeasePrefix: p.options.EtcdPrefix + endpointreconciler.LeasePrefix,
		Endpoints:   p.objects.resources.Endpoints, Slices: p.objects.resources.EndpointSlices,
	}, address, p.clock, p.logger.Named("endpoint-reconciler")).Run(ctx)
}

// keepIdentity keeps the Lease that says that this server is alive, until it is told to stop.
func (p *presence) keepIdentity(ctx context.Context) error {
	if !wait(ctx, p.bootstrapped) {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.stopping, cancel)()
	return lease.New(p.objects.resources.Leases, p.clock, p.logger.Named("identity")).Run(ctx)
}
