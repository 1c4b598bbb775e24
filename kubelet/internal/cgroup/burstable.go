package cgroup

import (
	"path"
	"sync"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// burstable is the total CPU request of the pods of the class: with that the
// class competes with each guaranteed pod. A restarted kubelet learns it as it
// sees its pods again.
type burstable struct {
	mu    sync.Mutex
	milli map[types.UID]int64
	set   uint64 // the group's shares
}

// shareBurstable adds the pod's request to the class's share; a pod that is
// gone has none.
func (m *Manager) shareBurstable(pod *core.Pod, milli int64, gone bool) error {
	if QOSClass(pod) != corev1.PodQOSBurstable {
		return nil
	}
	b := &m.burstable
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.milli == nil {
		b.milli = map[types.UID]int64{}
	}
	if delete(b.milli, pod.UID); !gone {
		b.milli[pod.UID] = milli
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
