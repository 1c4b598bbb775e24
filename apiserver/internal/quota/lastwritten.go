package quota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

// maxRemembered is the number of quotas for which a server remembers what it wrote.
const maxRemembered = 4096

// lastWritten holds the usage of each quota that this server last wrote. Another
// writer, such as kube-controller-manager, may not have seen yet what a quota
// was charged for, and write less.
type lastWritten struct {
	used *lru.Cache // by the quota's UID
}

func (w lastWritten) record(q *corev1.ResourceQuota) { w.used.Add(q.UID, q.Status.Used.DeepCopy()) }

// isLowered reports whether the usage is less than this server has written.
func (w lastWritten) isLowered(q *corev1.ResourceQuota) bool {
	mine, ok := w.used.Get(q.UID)
	return ok && len(excess(mine.(corev1.ResourceList), q.Status.Used)) > 0
}
