package quota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

// remembered is of how many quotas a server knows what it wrote.
const remembered = 4096

// written has what this server last wrote to be used of each quota. Somebody
// else who counts, kube-controller-manager for one, may not have seen yet what a
// quota was charged for, and write less.
type written struct {
	used *lru.Cache // by the quota's UID
}

func (w written) note(q *corev1.ResourceQuota) { w.used.Add(q.UID, q.Status.Used.DeepCopy()) }

// lowered tells whether less is said to be used than this server has written.
func (w written) lowered(q *corev1.ResourceQuota) bool {
	mine, ok := w.used.Get(q.UID)
	return ok && len(more(mine.(corev1.ResourceList), q.Status.Used)) > 0
}
