package cgroup

import (
	"path"
	"sort"
	"sync"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// burstable is the total CPU request of the pods of the class: with that the
// class competes with each guaranteed pod. A restarted kubelet takes it from the groups of
// the pods that it will see again, or will clean up.
type burstable struct {
	mu    sync.Mutex
	milli map[types.UID]int64
	set   uint64 // the group's shares
}

// shareBurstable adds a pod's request to its class's share; a pod that is
// gone has none.
func (m *Manager) shareBurstable(uid types.UID, class corev1.PodQOSClass, milli int64, gone bool) error {
	if class != corev1.PodQOSBurstable {
		return nil
	}
	b := &m.burstable
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.milli == nil {
		before, err := m.burstableBefore()
		if err != nil {
			return err
		}
		b.milli = before
	}
	if delete(b.milli, uid); !gone {
		b.milli[uid] = milli
	}
	sum := int64(0)
	for _, milli := range b.milli {
		sum += milli
	}
	shares := Shares(sum)
	if shares == b.set {
		return nil
	}
	r := &cgroups.Resources{}
	setShares(r, shares)
	if err := m.create(path.Join(podsGroup, burstableGroup), r); err != nil {
		return err
	}
	b.set = shares
	return nil
}

// burstableBefore are the requests of the pods of the class that have groups, about: all that a group
// tells is its share.
func (m *Manager) burstableBefore() (map[types.UID]int64, error) {
	pods, err := m.listed(true)
	if err != nil {
		return nil, err
	}
	before := map[types.UID]int64{}
	for uid, class := range pods {
		if class != corev1.PodQOSBurstable {
			continue
		}
		g, err := m.group(groupOf(uid, class), nil)
		if err != nil {
			return nil, err
		}
		before[uid] = requestOf(sharesAt(g.Path("cpu")))
	}
	return before, nil
}

// sharesAt is a group's weight, in Shares; 0 if it has none. Those of cgroup v2 are coarser: the least
// shares that become this weight.
func sharesAt(dir string) uint64 {
	if !cgroups.IsCgroup2UnifiedMode() {
		return countOf(dir, "cpu.shares")
	}
	return leastShares(countOf(dir, "cpu.weight"))
}

func leastShares(weight uint64) uint64 {
	return uint64(sort.Search(maxShares, func(shares int) bool {
		return cgroups.ConvertCPUSharesToCgroupV2Value(uint64(shares)) >= weight
	}))
}
