package housekeeping

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission/storageprotection"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/storage"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
)

// protection releases deleted objects of one kind that a finalizer keeps, once
// they are not in use (Kubernetes docs, "Storage Object in Use Protection"). Admission gives
// objects the finalizer; those that lack it nevertheless get it here.
type protection struct {
	finalizer string
	store     registry.Resource
	// unsettled are the objects for which needsFinalizerChange is true.
	unsettled *informer.Informer[bool]
	// isUsed reports whether a deleted object is in use; it is called in the write that
	// releases it.
	isUsed func(ctx context.Context, obj core.Object) (bool, error)
	// recheckInterval is when to look again at those in use, if nothing reports that they no
	// longer are.
	recheckInterval time.Duration
	worker          *worker
}

func newProtection(d *Dependencies, name string, resource core.Resource, finalizer string) (*protection, error) {
	p := &protection{finalizer: finalizer}
	var err error
	if p.unsettled, p.store, err = newInformer(d, resource, p.needsFinalizerChange); err != nil {
		return nil, err
	}
	p.worker = newWorker(name, d, several, p.sync)
	p.unsettled.OnChange(func(key informer.Key, _, now *bool) {
		if now != nil && *now {
			p.worker.add(key)
		}
	})
	return p, nil
}

// needsFinalizerChange is true for a deleted object with the finalizer, and for another without.
func (p *protection) needsFinalizerChange(obj core.Object) bool {
	return (obj.GetDeletionTimestamp() != nil) == slices.Contains(obj.GetFinalizers(), p.finalizer)
}

func (p *protection) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	if unsettled, ok := p.unsettled.Get(key.Namespace, key.Name); !ok || !unsettled {
		return 0, nil
	}
	var again time.Duration
	settle := func(current core.Object) (core.Object, error) {
		again = 0
		if !p.needsFinalizerChange(current) {
			return current, nil
		}
		if current.GetDeletionTimestamp() == nil {
			current.SetFinalizers(append(current.GetFinalizers(), p.finalizer))
			return current, nil
		}
		used, err := p.isUsed(ctx, current)
		if used {
			again = p.recheckInterval
			return current, nil
		}
		current.SetFinalizers(slices.DeleteFunc(current.GetFinalizers(), func(f string) bool { return f == p.finalizer }))
		return current, err
	}
	err := modify(ctx, p.store, registry.Target{Namespace: key.Namespace, Name: key.Name}, settle)
	return again, ignoreNotFound(err, "protect what is in use, and let go of what nobody uses")
}

func (p *protection) loop() Loop {
	return runTogether(p.unsettled.Run, afterSync(p.worker.run, p.unsettled.Synced()))
}

// anyMatches decodes a store's objects, or those of one namespace, as stored now,
// until one matches.
func anyMatches[T core.Object](ctx context.Context, store registry.Resource, namespace string, is func(obj T) bool) (bool, error) {
	list, err := store.List(ctx, namespace, registry.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, item := range list.Items {
		obj, err := store.Decode(item)
		if err != nil {
			return false, err
		}
		if is(obj.(T)) {
			return true, nil
		}
	}
	return false, nil
}

const claimProtectionName = "persistentvolumeclaim-protection-controller"

// newClaimProtection protects claims, which are in use by pods that have a
// node. A pod without a node does not get one once its claim is being deleted.
func newClaimProtection(d *Dependencies) (Loop, error) {
	p, err := newProtection(d, claimProtectionName, volume.Claims, storageprotection.ClaimFinalizer)
	if err != nil {
		return nil, err
	}
	pods, err := d.Store(core.Pods)
	if err != nil {
		return nil, err
	}
	p.isUsed = func(ctx context.Context, obj core.Object) (bool, error) {
		claim := obj.(*corev1.PersistentVolumeClaim)
		return anyMatches(ctx, pods, claim.Namespace, func(pod *core.Pod) bool { return keepsClaim(pod, claim) })
	}
	d.Pods.OnChange(func(_ informer.Key, old, now *informer.Pod) {
		if old == nil || now != nil && !now.Deleted {
			return
		}
		for _, claim := range old.Claims {
			p.worker.add(informer.Key{Namespace: old.Namespace, Name: claim})
		}
	})
	usage, err := newClaimUsage(d)
	if err != nil {
		return nil, err
	}
	return runTogether(p.loop(), usage.claims.Run, afterSync(usage.worker.run, usage.claims.Synced(), d.Pods.Synced())), nil
}

// keepsClaim reports whether a claim must stay for a pod. One that was generated for the pod
// need not once its node is done with the pod: a finalizer of the pod may wait for the claim.
func keepsClaim(pod *core.Pod, claim *corev1.PersistentVolumeClaim) bool {
	isDone := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	return pod.Spec.NodeName != "" && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return names(&v, claim) || !isDone && isGenerated(pod, &v, claim)
	})
}

// newVolumeProtection protects volumes, which are in use by the claim they are bound to.
func newVolumeProtection(d *Dependencies) (Loop, error) {
	p, err := newProtection(d, "persistentvolume-protection-controller", volume.Volumes, storageprotection.VolumeFinalizer)
	if err != nil {
		return nil, err
	}
	p.isUsed = func(_ context.Context, obj core.Object) (bool, error) {
		return obj.(*corev1.PersistentVolume).Status.Phase == corev1.VolumeBound, nil
	}
	return p.loop(), nil
}

// classRecheckInterval is how long a deleted class in use is left alone.
const classRecheckInterval = 30 * time.Second

// newClassProtection protects VolumeAttributesClasses, which are in use by the
// claims and volumes that have or request them.
func newClassProtection(d *Dependencies) (Loop, error) {
	p, err := newProtection(d, "volumeattributesclass-protection-controller", storage.AttributesClassResource,
		storageprotection.AttributesClassFinalizer)
	if err != nil {
		return nil, err
	}
	claims, err := d.Store(volume.Claims)
	if err != nil {
		return nil, err
	}
	volumes, err := d.Store(volume.Volumes)
	if err != nil {
		return nil, err
	}
	p.recheckInterval = classRecheckInterval
	p.isUsed = func(ctx context.Context, class core.Object) (bool, error) {
		name := class.GetName()
		used, err := anyMatches(ctx, claims, "", func(c *corev1.PersistentVolumeClaim) bool {
			modify := c.Status.ModifyVolumeStatus
			return ptr.Deref(c.Spec.VolumeAttributesClassName, "") == name || ptr.Deref(c.Status.CurrentVolumeAttributesClassName, "") == name ||
				modify != nil && modify.TargetVolumeAttributesClassName == name
		})
		if used || err != nil {
			return used, err
		}
		return anyMatches(ctx, volumes, "", func(v *corev1.PersistentVolume) bool {
			return ptr.Deref(v.Spec.VolumeAttributesClassName, "") == name
		})
	}
	return p.loop(), nil
}
