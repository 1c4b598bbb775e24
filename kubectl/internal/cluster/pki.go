package cluster

import (
	"net"
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
func certificatesOf(l Layout, s *settings) *certificates.Directory {
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if s.Address != "" {
		addresses = append(addresses, net.ParseIP(s.Address))
	}
	node := core.UserNodePrefix + s.NodeName
	serving := func(file, name string, groups []string, dnsNames ...string) certificates.Entry {
		return certificates.Entry{Name: file, Authority: certificates.Authority,
			Subject: pki.Subject{CommonName: name, Organization: groups, IPs: addresses, DNSNames: append(dnsNames, "localhost"), Server: true}}
	}
	apiserver := serving("apiserver", "kube-apiserver", nil, certificates.ServiceNames("cluster.local")...)
	apiserver.Chain = true // for `kctl join`
	// The API server's service, at the first address of its default range.
	apiserver.Subject.IPs = append(slices.Clone(addresses), net.IPv4(10, 0, 0, 1))
	return &certificates.Directory{
		Dir: l.Dir, Server: s.server(), RenewBefore: renewBefore,
		Entries: []certificates.Entry{
			{Name: certificates.Authority, Subject: pki.Subject{CommonName: "kctl-ca"}},
			apiserver,
			certificates.KubeletClient(),
			serving("scheduler-server", core.UserScheduler, nil),
			serving("kubelet-server", node, []string{core.GroupNodes}, s.NodeName),
			certificates.Admin(),
			certificates.User("scheduler", core.UserScheduler),
			certificates.User("controller-manager", core.UserControllerManager),
			certificates.User("kubelet", node, core.GroupNodes),
		},
	}
}
