package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/endpointreconciler"
	"kctl/apiserver/internal/identity/lease"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/core"
)

// leaseResource is what metrics call the leases of servers; upstream's.
var leaseResource = schema.GroupResource{Resource: "apiServerIPInfo"}

// reconcileEndpoints keeps this server among the endpoints of the service kubernetes until
// it is told to stop, unless only this machine can reach it.
func (s *Server) reconcileEndpoints(ctx context.Context) error {
	if !wait(ctx, s.bootstrapped) {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	var address netip.AddrPort
	found := s.options.Operation.EndpointReconciler == config.EndpointsByLease
	if found {
		address, found = s.reachedAt()
	}
	if !found {
		<-ctx.Done()
		return nil
	}
	return endpointreconciler.New(endpointreconciler.Stores{
		Leases: measured.Of(leaseResource, s.backend.Storage), LeasePrefix: s.options.EtcdPrefix + endpointreconciler.LeasePrefix,
		Endpoints: s.resources.Endpoints, Slices: s.resources.EndpointSlices,
	}, address, s.clock, s.logger.Named("endpoint-reconciler")).Run(ctx)
}

// keySetURI is where others find the keys of service account tokens: at this
// server, unless the flags name another place.
func (s *Server) keySetURI(listening string) string {
	if s.options.ServiceAccountJWKSURI != "" {
		return s.options.ServiceAccountJWKSURI
	}
	return "https://" + s.external(listening) + serviceaccount.KeySetPath
}

// external is the address and port at which clients are told to reach the server.
// listening is where it listens, which need not be an address that others can
// reach.
func (s *Server) external(listening string) string {
	if name := s.options.ExternalHostname; name != "" {
		return net.JoinHostPort(name, strconv.Itoa(s.port))
	}
	if at, _ := s.reachedAt(); at.IsValid() {
		return at.String()
	}
	return listening
}

// reachedAt is where others reach the server, if they can.
func (s *Server) reachedAt() (netip.AddrPort, bool) {
	addr, err := netip.ParseAddr(cmp.Or(s.options.AdvertiseAddress, s.options.BindAddress))
	if err == nil && addr.IsUnspecified() {
		if addr, err = core.OwnAddress(); err == nil && addr.IsLoopback() {
			err = errors.New("this machine has only loopback addresses")
		}
		if err != nil {
			s.logger.Warn("this server is not among the endpoints of service kubernetes; name its address with --advertise-address", zap.Error(err))
		}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(s.port)), err == nil && !addr.IsLoopback()
}

// keepIdentity keeps the Lease that says that this server is alive, until it is told to stop.
func (s *Server) keepIdentity(ctx context.Context) error {
	if !wait(ctx, s.bootstrapped) {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	return lease.New(s.resources.Leases, s.clock, s.logger.Named("identity")).Run(ctx)
}
