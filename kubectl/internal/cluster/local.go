package cluster

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"kctl/kubectl/internal/certificates"
)

// Local is a cluster of `kctl up` on this machine.
type Local struct {
	Layout
	Node      string // this machine's; "" if the settings can't be read
	Scheduler string // where it serves, as a URL; "" for nowhere
	// KubeletPort is its kubelet's; 0 for one that was never started, serves nowhere, or
	// that nothing is known of.
	KubeletPort int
}

// Of finds the cluster in whose directory a kubeconfig is, as In does.
func Of(kubeconfig string) *Local {
	if kubeconfig == "" {
		return nil
	}
	return In(filepath.Dir(kubeconfig))
}

// In finds the cluster in a directory; nil if there is none of `kctl up`. Of one whose
// settings this user may not read, or nobody can, only the layout is known.
func In(dir string) *Local {
	l, s := openCluster(dir)
	local := &Local{Layout: l}
	if s == nil {
		if _, err := os.Stat(l.Settings()); l.Dir == "" || err != nil {
			return nil
		}
		return local
	}
	local.Node = s.NodeName
	all, err := programs(l, s, s.asBefore())
	if err != nil {
		return local
	}
	if at := all[Scheduler].address; at != "" {
		local.Scheduler = "https://" + at
	}
	if _, err := os.Stat(l.Log(Kubelet)); err == nil {
		_, port, _ := net.SplitHostPort(all[Kubelet].address)
		local.KubeletPort, _ = strconv.Atoi(port)
	}
	return local
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
