package identity

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/certificate"
	"kctl/kubelet/internal/config"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// Identity is who and where a kubelet is.
type Identity struct {
	NodeName string

	hostIPs atomic.Pointer[[]string] // as last found
	config  *config.Config
	clock   clock.Clock
	logger  *zap.Logger
}

// Find finds out who we are.
func Find(c *config.Config, clock clock.Clock, logger *zap.Logger) (*Identity, error) {
	name := c.NodeName
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("host name: %w", err)
		}
	}
	i := &Identity{NodeName: strings.ToLower(name), config: c, clock: clock}
	i.logger = logger.With(zap.String("node", i.NodeName))
	found, err := hostIPs(c)
	i.hostIPs.Store(&found)
	return i, err
}

// HostIPs are the node's addresses as last found, at least one; they must not be changed.
func (i *Identity) HostIPs() []string { return *i.hostIPs.Load() }

// FindHostIPs finds the node's addresses as they are now: those given stay, and another may have come from
// DHCP. While no route of its family leads out of this machine, it keeps the last, by which others will reach
// it again: one that loses its lease for a moment does not move to IPv6 and back.
func (i *Identity) FindHostIPs() []string {
	last := i.HostIPs()
	if i.config.NodeIP != "" {
		return last
	}
	ip, ok := core.RoutedAddress()
	before, err := netip.ParseAddr(last[0])
	if !ok || ip == before || err == nil && !before.IsLoopback() && before.Is4() != ip.Is4() {
		return last
	}
	now := []string{ip.String()}
	i.hostIPs.Store(&now)
	i.logger.Info("the node has another address", zap.Strings("before", last), zap.Strings("now", now))
	return now
}

func hostIPs(c *config.Config) ([]string, error) {
	if c.NodeIP != "" {
		ips, err := core.ParseNodeIPs(c.NodeIP)
		if err != nil {
			return nil, fmt.Errorf("--node-ip: %w", err)
		}
		return ips, nil
	}
	ip, err := core.OwnAddress()
	if err != nil {
		return nil, err
	}
	return []string{ip.String()}, nil
}

// Credentials is where the API server is, and our credentials for it. Without a
// valid certificate of our own, we first get one, however long that takes.
func (i *Identity) Credentials(ctx context.Context) (*rest.Config, error) {
	if i.config.BootstrapKubeconfig != "" {
		daemon.Waiting("a client certificate from the API server", i.logger)
		if err := certificate.Bootstrap(ctx, i.config.Kubeconfig, i.config.BootstrapKubeconfig, i.certificates()); err != nil {
			return nil, err
		}
	}
	cfg, err := rest.LoadKubeconfig(i.config.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	if i.config.RotateCertificates {
		if err := certificate.Adopt(cfg, i.certificates()); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// certificates is how we get our client certificate.
func (i *Identity) certificates() certificate.Options {
	return certificate.Options{
		Purpose: certificate.Client, Subject: pki.Subject{CommonName: core.UserNodePrefix + i.NodeName, Organization: []string{core.GroupNodes}},
		Dir: i.config.CertDir, Clock: i.clock, Logger: i.logger,
	}
}

// ServingCertificates is how we get our serving certificate.
func (i *Identity) ServingCertificates() certificate.Options {
	o := i.certificates()
	o.Purpose = certificate.Serving
	o.Subject.Server, o.Subject.DNSNames, o.Subject.IPs = true, []string{i.NodeName}, i.ServingIPs()
	return o
}

// ServingIPs are the addresses that others reach us by.
func (i *Identity) ServingIPs() []net.IP {
	var ips []net.IP
	for _, address := range append([]string{i.config.Serving.Address}, i.HostIPs()...) {
		ip := net.ParseIP(address)
		if !ip.IsUnspecified() && !slices.ContainsFunc(ips, ip.Equal) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// RunRotators runs what keeps our certificates valid.
func (i *Identity) RunRotators(client *rest.Client, registry *prometheus.Registry, run func(name string, f func(context.Context) error)) {
	if i.config.RotateCertificates {
		rotator := certificate.Rotator{Options: i.certificates(), Client: client, Rotated: client.Reconnect}
		rotator.Register(registry)
		run("client certificate", rotator.Run)
	}
	if i.config.ServerTLSBootstrap {
		rotator := certificate.Rotator{Options: i.ServingCertificates(), Client: client, Addresses: i.ServingIPs}
		rotator.Register(registry)
		run("serving certificate", rotator.Run)
	}
}
