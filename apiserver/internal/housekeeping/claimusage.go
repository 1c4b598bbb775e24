package housekeeping

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// users are the pods that use a claim, on a node or not yet. The claims that are generated for
	// a pod are used by it only if they are its own.
	users map[informer.Key]map[types.UID]claimUser
}

// claimUser says how a pod uses a claim.
type claimUser struct{ ifOwn bool }

// claimUse is what a claim says of its use. Unused is empty for nothing.
type claimUse struct {
	Recorded bool // in its state, it is recorded
	Unused   corev1.ConditionStatus
	Owner    types.UID
}

func claimUseOf(obj core.Object) claimUse {
	claim := obj.(*corev1.PersistentVolumeClaim)
	use := claimUse{Recorded: claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound}
	if c := unusedCondition(claim); c != nil {
		use.Unused = c.Status
	}
	if owner := metav1.GetControllerOfNoCopy(claim); owner != nil {
		use.Owner = owner.UID
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
	u := &claimUsage{clock: d.Clock, users: map[informer.Key]map[types.UID]claimUser{}}
	var err error
	if u.claims, u.claimStore, err = newInformer(d, volume.Claims, claimUseOf); err != nil {
		return nil, err
	}
	u.worker = newWorker(claimProtectionName, d, several, u.sync)
	u.claims.OnChange(func(key informer.Key, old, now *claimUse) {
		// Also after the loop's own write: its users may have changed back before the informer
		// had it, and then nothing was to do yet.
		if now != nil && now.Recorded && (old == nil || *old != *now) {
			u.worker.add(key)
		}
	})
	d.Pods.OnChange(func(_ informer.Key, old, now *informer.Pod) {
		if old != nil && now != nil && old.UID == now.UID && needsClaims(old) == needsClaims(now) {
			return // a pod's claims don't change
		}
		u.removeUser(old)
		u.addUser(now)
	})
	return u, nil
}

// needsClaims reports whether a pod may still read and write its claims.
func needsClaims(pod *informer.Pod) bool {
	return !pod.HasTerminated() && !pod.Idle
}

func (u *claimUsage) addUser(pod *informer.Pod) {
	if pod == nil || !needsClaims(pod) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range pod.Claims {
		key := informer.Key{Namespace: pod.Namespace, Name: name}
		if u.users[key] == nil {
			u.users[key] = map[types.UID]claimUser{}
		}
		u.users[key][pod.UID] = claimUser{ifOwn: slices.Contains(pod.Generated, name)}
		u.worker.add(key)
	}
}

func (u *claimUsage) removeUser(pod *informer.Pod) {
	if pod == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range pod.Claims {
		key := informer.Key{Namespace: pod.Namespace, Name: name}
		if delete(u.users[key], pod.UID); len(u.users[key]) == 0 {
			delete(u.users, key)
		}
		u.worker.add(key)
	}
}

// isUsed reports whether a pod uses the claim that owner controls.
func (u *claimUsage) isUsed(key informer.Key, owner types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for pod, user := range u.users[key] {
		if !user.ifOwn || pod == owner {
			return true
		}
	}
	return false
}

func (u *claimUsage) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	use, ok := u.claims.Get(key.Namespace, key.Name)
	if !ok || !use.Recorded || use.Unused == unusedStatus(u.isUsed(key, use.Owner)) {
		return 0, nil
	}
	err := modify(ctx, u.claimStore, registry.Target{Namespace: key.Namespace, Name: key.Name, Subresource: "status"},
		func(current core.Object) (core.Object, error) {
			claim := current.(*corev1.PersistentVolumeClaim)
			if use := claimUseOf(claim); use.Recorded {
				setUnused(claim, u.isUsed(key, use.Owner), metav1.NewTime(u.clock.Now()))
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
