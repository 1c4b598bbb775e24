package cluster

import (
	"net/netip"
	"path/filepath"

	"kctl/kubectl/internal/certificates"
)

// Local is a cluster of `kctl up`, as a kubeconfig leads to it.
type Local struct {
	Dir       string
	Scheduler string // where it serves, as a URL
}

// Of finds the cluster in whose directory a kubeconfig is; nil if it is not one
// of `kctl up`, or this user may not look at it.
func Of(kubeconfig string) *Local {
	if kubeconfig == "" {
		return nil
	}
	l, s := openCluster(filepath.Dir(kubeconfig))
	if s == nil {
		return nil
	}
	return &Local{Dir: l.Dir, Scheduler: s.scheduler()}
}

// openCluster returns the cluster in a directory; its settings are nil where there is none.
func openCluster(dir string) (Layout, *settings) {
	l, err := newLayout(dir)
	if err != nil {
		return l, nil
	}
	s, err := loadSettings(l)
	if err != nil {
		return l, nil
	}
	return l, s
}

// Certificates are those of the cluster in a directory, to be checked as they are; nil
// if there is no cluster of `kctl up`.
func Certificates(dir string) *certificates.Directory {
	l, s := openCluster(dir)
	if s == nil {
		return nil
	}
	d := certificatesOf(l, s, netip.Addr{})
	for i := range d.Entries {
		d.Entries[i].Subject.DNSNames, d.Entries[i].Subject.IPs = nil, nil
	}
	return d
}
