package server

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"strconv"

	"go.uber.org/zap"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/proto/core"
)

// endpoint is where others reach this server.
type endpoint struct {
	*process
	port int // set once the server listens, before any loop and any request
}

// keySetURI is where others find the keys of service account tokens: at this
// server, unless the flags name another place.
func (e *endpoint) keySetURI(listening string) string {
	if e.options.ServiceAccountJWKSURI != "" {
		return e.options.ServiceAccountJWKSURI
	}
	return "https://" + e.external(listening) + serviceaccount.KeySetPath
}

// external is the address and port at which clients are told to reach the server.
// listening is where it listens, which need not be an address that others can
// reach.
func (e *endpoint) external(listening string) string {
	if name := e.options.ExternalHostname; name != "" {
		return net.JoinHostPort(name, strconv.Itoa(e.port))
	}
	if at, _ := e.reachedAt(); at.IsValid() {
		return at.String()
	}
	return listening
}

// reachedAt is where others reach the server, if they can.
func (e *endpoint) reachedAt() (netip.AddrPort, bool) {
	addr, err := netip.ParseAddr(cmp.Or(e.options.AdvertiseAddress, e.options.BindAddress))
	if err == nil && addr.IsUnspecified() {
		if addr, err = core.OwnAddress(); err == nil && addr.IsLoopback() {
			err = errors.New("this machine has only loopback addresses")
		}
		if err != nil {
			e.logger.Warn("this server is not among the endpoints of service kubernetes; name its address with --advertise-address", zap.Error(err))
		}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(e.port)), err == nil && !addr.IsLoopback()
}
