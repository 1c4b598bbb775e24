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
// they are not in use (Kubernetes docs, "Storage Object in Use Protection").
type protection struct {
	finalizer string
	store     registry.Resource
	// waiting are the objects that only the finalizer keeps.
	waiting *informer.Informer[bool]
	// isUsed reports whether a waiting object is in use; it is called in the write that
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
	if p.waiting, p.store, err = newInformer(d, resource, p.awaitsFinalizer, informer.Options[bool]{}); err != nil {
		return nil, err
	}
	p.worker = newWorker(name, d, p.sync)
	p.waiting.OnChange(func(key informer.Key, _, now *bool) {
		if now != nil && *now {
			p.worker.add(key)
		}
	})
	return p, nil
}

func (p *protection) awaitsFinalizer(obj core.Object) bool {
	return obj.GetDeletionTimestamp() != nil && slices.Contains(obj.GetFinalizers(), p.finalizer)
}

func (p *protection) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	if waits, ok := p.waiting.Get(key.Namespace, key.Name); !ok || !waits {
		return 0, nil
	}
	var again time.Duration
	release := func(current core.Object) (core.Object, error) {
		again = 0
		if !p.awaitsFinalizer(current) {
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
	err := modify(ctx, p.store, registry.Target{Namespace: key.Namespace, Name: key.Name}, release)
	return again, ignoreNotFound(err, "let go of what nobody uses")
}

func (p *protection) loop() Loop {
	return runTogether(p.waiting.Run, afterSync(p.worker.run, p.waiting.Synced()))
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

// newClaimProtection protects claims, which are in use by pods that have a
// node. A pod without a node does not get one once its claim is being deleted.
func newClaimProtection(d *Dependencies) (Loop, error) {
	p, err := newProtection(d, "persistentvolumeclaim-protection-controller", volume.Claims, storageprotection.ClaimFinalizer)
	if err != nil {
		return nil, err
	}
	pods, err := d.Of(core.Pods)
	if err != nil {
		return nil, err
	}
	p.isUsed = func(ctx context.Context, claim core.Object) (bool, error) {
		return anyMatches(ctx, pods, claim.GetNamespace(), func(pod *core.Pod) bool {
			return pod.Spec.NodeName != "" && slices.Contains(informer.PodOf(pod).Claims, claim.GetName())
		})
	}
	d.Pods.OnChange(func(_ informer.Key, old, now *informer.Pod) {
		if old == nil || now != nil {
			return
		}
		for _, claim := range old.Claims {
			p.worker.add(informer.Key{Namespace: old.Namespace, Name: claim})
		}
	})
	return p.loop(), nil
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
	p, err := newProtection(d, "volumeattributesclass-protection-controller", storage.AttributesClassResource, storageprotection.AttributesClassFinalizer)
	if err != nil {
		return nil, err
	}
	claims, err := d.Of(volume.Claims)
	if err != nil {
		return nil, err
	}
	volumes, err := d.Of(volume.Volumes)
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
