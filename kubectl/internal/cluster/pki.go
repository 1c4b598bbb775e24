package cluster

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"kctl/kubectl/internal/certificates"
	"kctl/proto/core"
	"kctl/proto/pki"
)

// renewBefore: certificates that end sooner than this are renewed by up.
const renewBefore = 30 * 24 * time.Hour

// users are the kubeconfigs that are written.
var users = []string{"admin", "scheduler", "controller-manager", "kubelet"}

// certificatesOf is the cluster's directory of certificates and kubeconfigs.
// service is the address of the API server's service.
func certificatesOf(l Layout, s *settings, service netip.Addr) *certificates.Directory {
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if s.Address != "" {
		addresses = append(addresses, net.ParseIP(s.Address))
	}
	node := core.UserNodePrefix + s.NodeName
	serving := func(file, name string, groups []string, dnsNames ...string) certificates.Entry {
		return certificates.Entry{
			Name:      file,
			Authority: certificates.Authority,
			Subject:   pki.Subject{CommonName: name, Organization: groups, IPs: addresses, DNSNames: append(dnsNames, "localhost"), Server: true},
		}
	}
	apiserver := serving("apiserver", "kube-apiserver", nil, append(certificates.ServiceNames("cluster.local"), s.NodeName)...)
	apiserver.Chain = true // for `kctl join`
	apiserver.Subject.IPs = append(slices.Clone(addresses), net.IP(service.AsSlice()))
	return &certificates.Directory{
		Dir: l.Dir, Server: s.server(), RenewBefore: renewBefore,
		Entries: []certificates.Entry{
			{Name: certificates.Authority, Subject: pki.Subject{CommonName: "kctl-ca"}},
			apiserver,
			certificates.KubeletClient(),
			certificates.FrontProxyAuthority(),
			certificates.FrontProxyClient(),
			serving("scheduler-server", core.UserScheduler, nil),
			serving("kubelet-server", node, []string{core.GroupNodes}, s.NodeName),
			certificates.Admin(),
			certificates.User("scheduler", core.UserScheduler),
			certificates.User("controller-manager", core.UserControllerManager),
			certificates.User("kubelet", node, core.GroupNodes),
		},
	}
}

const (
	serviceRangeFlag    = "--service-cluster-ip-range"
	defaultServiceRange = "10.0.0.0/24"
)

// serviceAddress is the first address of the range that the API server's flags
// name, or of its default one: pods reach it there.
func serviceAddress(flags string) (netip.Addr, error) {
	args, err := splitFlags(flags)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--apiserver-flags: %w", err)
	}
	text := cmp.Or(flagOf(args, serviceRangeFlag), defaultServiceRange)
	address, err := certificates.ServiceAddress(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--apiserver-flags: %s=%s: not a range of addresses", serviceRangeFlag, text)
	}
	return address, nil
}
