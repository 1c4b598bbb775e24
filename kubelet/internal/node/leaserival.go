package node

import (
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
)

const (
	// rivalWrites is the number of renewals in a row that found somebody else's
	// write which can't be chance: only a kubelet renews a node's lease for long.
	rivalWrites = 3
	// rivalGone is how many undisturbed renewals mean that it is over.
	rivalGone = 8
)

// leaseRival notices that another kubelet with this node's name and credentials
// renews the node's lease, for example on a copied machine. Both would run the
// node's pods, and the API server can't distinguish them.
type leaseRival struct {
	writes, peace int
	told          bool
}

// renewed records whether a renewal found somebody else's write. It returns
// whether to report that now, once for each rival.
func (r *leaseRival) renewed(conflict bool) (tell bool) {
	if conflict {
		r.writes, r.peace = r.writes+1, 0
	} else if r.peace++; r.peace >= rivalGone {
		*r = leaseRival{}
	}
	if r.told || r.writes < rivalWrites {
		return false
	}
	r.told = true
	return true
}

func (m *Manager) recordRival() {
	node, here := m.Node(), strings.Join(m.config.Addresses(), ", ")
	m.config.Logger.Error("another kubelet renews the lease of this node: two machines have its name and credentials; stop one of them, and "+
		"let it join under a name of its own",
		zap.String("address", here))
	m.config.Events.Eventf(node, corev1.EventTypeWarning, "DuplicateNode",
		"Another kubelet has the name and the credentials of node %s; this one is at %s. Stop one of them", m.config.Name, here)
}
