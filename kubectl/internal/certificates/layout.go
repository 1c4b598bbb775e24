package certificates

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kctl/proto/core"
	"kctl/proto/pki"
)

// How long what is made lasts, unless asked for otherwise.
const (
	AuthorityLasts = 10 * 365 * 24 * time.Hour
	Lasts          = 365 * 24 * time.Hour
)

// Names of files that other packages need to know.
const (
	Authority  = "ca"
	SigningKey = "sa"
)

// Entry is one certificate with its key: pki/NAME.crt and pki/NAME.key, or the
// two inside of NAME.kubeconfig.
type Entry struct {
	Name string
	// Authority is the entry that signs it; "" for authorities.
	Authority  string
	Subject    pki.Subject
	Kubeconfig bool
	// Chain appends the authority's certificate to the file, so that a joining
	// machine can compare the server's authority with the hash that it was given.
	Chain bool
}

// Directory is a directory of certificates.
type Directory struct {
	Dir     string
	Entries []Entry // authorities before what they sign
	// Server is the API server in kubeconfigs that are made.
	Server string
	// RenewBefore: what ends sooner than this is renewed by Make.
	RenewBefore           time.Duration
	Lasts, AuthorityLasts time.Duration // zero for this package's
}

// Path is a file below pki/.
func (d *Directory) Path(name string) string { return filepath.Join(d.Dir, "pki", name) }

// Kubeconfig is the kubeconfig of a user.
func (d *Directory) Kubeconfig(name string) string {
	return filepath.Join(d.Dir, name+".kubeconfig")
}

// file is where an entry's certificate is.
func (d *Directory) file(e Entry) string {
	if e.Kubeconfig {
		return d.Kubeconfig(e.Name)
	}
	return d.Path(e.Name + ".crt")
}

func (d *Directory) keyFile(e Entry) string {
	if e.Kubeconfig {
		return d.Kubeconfig(e.Name)
	}
	return d.Path(e.Name + ".key")
}

func (d *Directory) lasts(e Entry) time.Duration {
	asked, usual := d.Lasts, Lasts
	if e.Authority == "" {
		asked, usual = d.AuthorityLasts, AuthorityLasts
	}
	if asked > 0 {
		return asked
	}
	return usual
}

// Hosts are names and addresses that a server is reached by.
type Hosts []string

func (h Hosts) addTo(s pki.Subject) pki.Subject {
	for _, host := range h {
		if ip := net.ParseIP(host); ip != nil {
			s.IPs = append(s.IPs, ip)
		} else {
			s.DNSNames = append(s.DNSNames, host)
		}
	}
	return s
}

// unique is every one of them once.
func (h Hosts) unique() Hosts {
	var once Hosts
	for _, host := range h {
		if !slices.Contains(once, host) {
			once = append(once, host)
		}
	}
	return once
}

// local is how programs on the same machine reach a server.
var local = Hosts{"localhost", "127.0.0.1", "::1"}

// ServiceNames are the names of the API server inside a cluster.
func ServiceNames(domain string) Hosts {
	return Hosts{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain}
}

// ServiceAddress is the address that pods reach the API server by: the first of its
// --service-cluster-ip-range, or of the default one of two.
func ServiceAddress(ranges string) (netip.Addr, error) {
	first, _, _ := strings.Cut(ranges, ",")
	services, err := netip.ParsePrefix(first)
	if err != nil {
		return netip.Addr{}, err
	}
	return services.Masked().Addr().Next(), nil
}

// ControlPlane is what a machine of the control plane has, as kubeadm names it.
func ControlPlane(apiServer, etcd Hosts) []Entry {
	const etcdCA = "etcd/ca"
	serving := func(hosts Hosts, s pki.Subject) pki.Subject {
		s.Server = true
		return append(local, hosts...).unique().addTo(s)
	}
	return []Entry{
		{Name: Authority, Subject: pki.Subject{CommonName: "kubernetes"}},
		FrontProxyAuthority(),
		{Name: etcdCA, Subject: pki.Subject{CommonName: "etcd-ca"}},
		{Name: "apiserver", Authority: Authority, Chain: true, Subject: serving(apiServer, pki.Subject{CommonName: "kube-apiserver"})},
		// kubeadm has none: upstream's scheduler signs its own.
		{Name: "scheduler-server", Authority: Authority, Subject: serving(apiServer, pki.Subject{CommonName: core.UserScheduler})},
		KubeletClient(),
		FrontProxyClient(),
		{Name: "apiserver-etcd-client", Authority: etcdCA, Subject: pki.Subject{CommonName: "kube-apiserver-etcd-client", Client: true}},
		{Name: "etcd/server", Authority: etcdCA, Subject: serving(etcd, pki.Subject{CommonName: "kube-etcd", Client: true})},
		{Name: "etcd/peer", Authority: etcdCA, Subject: serving(etcd, pki.Subject{CommonName: "kube-etcd-peer", Client: true})},
		{Name: "etcd/healthcheck-client", Authority: etcdCA, Subject: pki.Subject{CommonName: "kube-etcd-healthcheck-client", Client: true}},
		Admin(),
		User("scheduler", core.UserScheduler),
	}
}

const frontProxyCA = "front-proxy-ca"

// FrontProxyAuthority is the authority that API servers behind the API server trust.
func FrontProxyAuthority() Entry {
	return Entry{Name: frontProxyCA, Subject: pki.Subject{CommonName: frontProxyCA}}
}

// FrontProxyClient is the certificate that the API server presents to API servers behind
// it.
func FrontProxyClient() Entry {
	return Entry{Name: "front-proxy-client", Authority: frontProxyCA, Subject: pki.Subject{CommonName: "front-proxy-client", Client: true}}
}

// KubeletClient is the certificate that the API server presents to kubelets.
func KubeletClient() Entry {
	return Entry{
		Name:      "apiserver-kubelet-client",
		Authority: Authority,
		Subject:   pki.Subject{CommonName: "kube-apiserver-kubelet-client", Organization: []string{core.GroupMasters}, Client: true},
	}
}

// Admin is the kubeconfig of a user who may do everything.
func Admin() Entry { return User("admin", "kubernetes-admin", core.GroupMasters) }

// User is the kubeconfig of a user.
func User(file, name string, groups ...string) Entry {
	return Entry{
		Name:       file,
		Authority:  Authority,
		Kubeconfig: true,
		Subject:    pki.Subject{CommonName: name, Organization: groups, Client: true},
	}
}
