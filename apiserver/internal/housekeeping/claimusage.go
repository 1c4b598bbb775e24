package housekeeping

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
)

// claimUsage records in bound claims whether a pod uses them, and since when, in
// the condition Unused (KEP-5541). It is a part of the loop that protects claims.
type claimUsage struct {
	claims     *informer.Informer[claimUse]
	claimStore registry.Resource
	clock      clock.Clock
	worker     *worker

	mu sync.Mutex
	// users counts the pods that use a claim, on a node or not yet.
	users map[informer.Key]int
}

// claimUse is what a claim says of its use. Unused is empty for nothing.
type claimUse struct {
	Recorded bool // in its state, it is recorded
	Unused   corev1.ConditionStatus
}

func claimUseOf(obj core.Object) claimUse {
	claim := obj.(*corev1.PersistentVolumeClaim)
	use := claimUse{Recorded: claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound}
	if c := unusedCondition(claim); c != nil {
		use.Unused = c.Status
	}
	return use
}

func unusedCondition(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaimCondition {
	i := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimUnused
	})
	if i < 0 {
		return nil
	}
	return &claim.Status.Conditions[i]
}

func newClaimUsage(d *Dependencies) (*claimUsage, error) {
	u := &claimUsage{clock: d.Clock, users: map[informer.Key]int{}}
	var err error
	if u.claims, u.claimStore, err = newInformer(d, volume.Claims, claimUseOf, informer.Options[claimUse]{}); err != nil {
		return nil, err
	}
	u.worker = newWorker(claimProtectionName, d, u.sync)
	u.claims.OnChange(func(key informer.Key, old, now *claimUse) {
		// Also after the loop's own write: its users may have changed back before the informer
		// had it, and then nothing was to do yet.
		if now != nil && now.Recorded && (old == nil || *old != *now) {
			u.worker.add(key)
		}
	})
	d.Pods.OnChange(func(_ informer.Key, old, now *informer.Pod) {
		if old != nil && now != nil && old.UID == now.UID && old.HasTerminated() == now.HasTerminated() {
			return // a pod's claims don't change
		}
		u.count(old, -1)
		u.count(now, 1)
	})
	return u, nil
}

// count adds a pod to the users of its claims, or takes it away.
func (u *claimUsage) count(pod *informer.Pod, more int) {
	if pod == nil || pod.HasTerminated() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range pod.Claims {
		key := informer.Key{Namespace: pod.Namespace, Name: name}
		if u.users[key] += more; u.users[key] == 0 {
			delete(u.users, key)
		}
		u.worker.add(key)
	}
}

func (u *claimUsage) isUsed(key informer.Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.users[key] > 0
}

func (u *claimUsage) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	use, ok := u.claims.Get(key.Namespace, key.Name)
	if !ok || !use.Recorded || use.Unused == unusedStatus(u.isUsed(key)) {
		return 0, nil
	}
	err := modify(ctx, u.claimStore, registry.Target{Namespace: key.Namespace, Name: key.Name, Subresource: "status"}, func(current core.Object) (core.Object, error) {
		claim := current.(*corev1.PersistentVolumeClaim)
		if claimUseOf(claim).Recorded {
			setUnused(claim, u.isUsed(key), metav1.NewTime(u.clock.Now()))
		}
		return claim, nil
	})
	return 0, ignoreNotFound(err, "record whether a claim is in use")
}

// names reports whether a volume is a claim, by its name.
func names(v *corev1.Volume, claim *corev1.PersistentVolumeClaim) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
}

// isGenerated reports whether a claim was generated for a volume of this pod, and not for
// another pod of its name.
func isGenerated(pod *core.Pod, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) bool {
	return v.Ephemeral != nil && pod.Name+"-"+v.Name == claim.Name && metav1.IsControlledBy(claim, pod)
}

func unusedStatus(used bool) corev1.ConditionStatus {
	if used {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

// setUnused writes the condition if it has changed, with the time of the change.
func setUnused(claim *corev1.PersistentVolumeClaim, used bool, now metav1.Time) {
	condition := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: unusedStatus(used), LastTransitionTime: now,
		Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC",
	}
	if used {
		condition.Reason, condition.Message = "PodUsingPVC", "A pod is currently referencing this PVC"
	}
	switch has := unusedCondition(claim); {
	case has == nil:
		claim.Status.Conditions = append(claim.Status.Conditions, condition)
	case has.Status != condition.Status:
		*has = condition
	}
}
