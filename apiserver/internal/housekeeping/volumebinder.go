package housekeeping

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/storage"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
	"kctl/proto/events"
)

const volumeBinderName = "persistentvolume-binder-controller"

// Annotations through which upstream's controllers, schedulers and provisioners
// communicate.
const (
	bindCompleted     = "pv.kubernetes.io/bind-completed"          // of a claim that had a volume
	boundByController = "pv.kubernetes.io/bound-by-controller"     // no user had chosen it
	provisionedBy     = "pv.kubernetes.io/provisioned-by"          // of volumes that were made for claims
	selectedNode      = "volume.kubernetes.io/selected-node"       // of a claim whose pod has one
	provisioner       = "volume.kubernetes.io/storage-provisioner" // the provisioner for a claim
	provisionerBefore = "volume.beta.kubernetes.io/storage-provisioner"
)

// volumeBinder binds claims to existing volumes, or asks the provisioner of a class
// for one. It maintains the phase of both, and marks volumes whose claim is gone as
// released (Kubernetes docs, "Persistent Volumes", "Lifecycle of a volume and
// claim").
//
//	claim:  Pending → Bound → Lost
//	volume: Pending → Available → Bound → Released (→ Failed), or back to Available
//
// Every write checks the object as stored, and another binder may be at work: if two
// volumes were bound to one claim, the claim names one, and the other is released.
type volumeBinder struct {
	claims  *informer.Informer[*corev1.PersistentVolumeClaim]
	volumes *informer.Informer[*corev1.PersistentVolume]
	classes *informer.Informer[*storagev1.StorageClass]

	claimStore, volumeStore, events registry.Resource

	worker *worker // of claims, and of volumes, whose keys have no namespace
	// lastEvents is the last event of each claim or volume; only the worker uses it.
	lastEvents map[informer.Key]string
	clock      clock.Clock
	logger     *zap.Logger
}

func newVolumeBinder(d *Dependencies) (Loop, error) {
	b := &volumeBinder{lastEvents: map[informer.Key]string{}, clock: d.Clock, logger: d.Logger.With(zap.String("loop", volumeBinderName))}
	var err error
	if b.claims, b.claimStore, err = newInformer(d, volume.Claims, whole[*corev1.PersistentVolumeClaim]); err != nil {
		return nil, err
	}
	if b.volumes, b.volumeStore, err = newInformer(d, volume.Volumes, whole[*corev1.PersistentVolume]); err != nil {
		return nil, err
	}
	if b.classes, _, err = newInformer(d, storage.ClassResource, whole[*storagev1.StorageClass]); err != nil {
		return nil, err
	}
	if b.events, err = d.Store(core.Events); err != nil {
		return nil, err
	}
	// One at a time, or two claims would choose the same volume.
	b.worker = newWorker(volumeBinderName, d, 1, b.sync)
	b.claims.OnChange(b.claimChanged)
	b.volumes.OnChange(b.volumeChanged)
	b.classes.OnChange(func(key informer.Key, _, _ **storagev1.StorageClass) { b.enqueueUnbound(key.Name) })
	return runTogether(b.claims.Run, b.volumes.Run, b.classes.Run,
		afterSync(b.worker.run, b.claims.Synced(), b.volumes.Synced(), b.classes.Synced())), nil
}

func (b *volumeBinder) claimChanged(key informer.Key, _, now **corev1.PersistentVolumeClaim) {
	b.worker.add(key)
	b.volumes.Each(func(volume informer.Key, v *corev1.PersistentVolume) {
		if claimOf(v) == key || now != nil && (*now).Spec.VolumeName == volume.Name {
			b.worker.add(volume)
		}
	})
}

func (b *volumeBinder) volumeChanged(key informer.Key, old, now **corev1.PersistentVolume) {
	b.worker.add(key)
	for _, v := range []**corev1.PersistentVolume{old, now} {
		if v != nil && (*v).Spec.ClaimRef != nil {
			b.worker.add(claimOf(*v))
		}
	}
	if now != nil && (*now).Spec.ClaimRef == nil {
		b.enqueueUnbound(classOfVolume(*now))
	}
}

// enqueueUnbound queues the claims of a class that have no volume, for which there may be one
// now.
func (b *volumeBinder) enqueueUnbound(class string) {
	b.claims.Each(func(key informer.Key, c *corev1.PersistentVolumeClaim) {
		if !isCompleted(c) && volume.ClassOf(c) == class {
			b.worker.add(key)
		}
	})
}

func (b *volumeBinder) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	if key.Namespace == "" {
		if v, ok := b.volumes.Get("", key.Name); ok {
			return 0, b.syncVolume(ctx, v)
		}
	} else if c, ok := b.claims.Get(key.Namespace, key.Name); ok {
		if isCompleted(c) {
			return 0, b.checkBound(ctx, c)
		}
		return 0, b.findVolume(ctx, c)
	}
	delete(b.lastEvents, key)
	return 0, nil
}

// checkBound checks a claim that had a volume.
func (b *volumeBinder) checkBound(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	if c.Spec.VolumeName == "" {
		return b.markLost(ctx, c, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	}
	v, err := b.getVolume(ctx, c.Spec.VolumeName)
	switch {
	case apierrors.IsNotFound(err):
		return b.markLost(ctx, c, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case err != nil:
		return err
	case v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID != c.UID:
		return b.markLost(ctx, c, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
	}
	return b.bind(ctx, v, c)
}

// getVolume reads a volume as stored now, because a claim that is marked as lost stays lost.
func (b *volumeBinder) getVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return registry.GetStored[*corev1.PersistentVolume](ctx, b.volumeStore, "", name)
}

func (b *volumeBinder) markLost(ctx context.Context, c *corev1.PersistentVolumeClaim, reason, message string) error {
	b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeWarning, reason, message)
	return b.setClaimPhase(ctx, c, corev1.ClaimLost, nil)
}

// findVolume looks for a volume for a claim that has none.
func (b *volumeBinder) findVolume(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	if c.Spec.VolumeName != "" {
		return b.bindRequested(ctx, c)
	}
	className := volume.ClassOf(c)
	class, known := b.classes.Get("", className)
	waits := known && ptr.Deref(class.VolumeBindingMode, "") == storagev1.VolumeBindingWaitForFirstConsumer
	if v := matchVolume(c, b.volumes.List(), waits); v != nil {
		return b.bind(ctx, v, c)
	}
	_, selected := c.Annotations[selectedNode]
	switch {
	case waits && !selected:
		b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeNormal, "WaitForFirstConsumer",
			"waiting for first consumer to be created before binding")
	case className == "":
		b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeNormal, "FailedBinding",
			"no persistent volumes available for this claim and no storage class is set")
	case !known:
		b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeWarning, "ProvisioningFailed",
			fmt.Sprintf("storageclass.storage.k8s.io %q not found", className))
	case strings.HasPrefix(class.Provisioner, "kubernetes.io/"): // they are no longer provisioned
		b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeWarning, "ProvisioningFailed", "no volume plugin matched name: "+class.Provisioner)
	default:
		return b.requestProvisioning(ctx, c, class.Provisioner)
	}
	return b.setClaimPhase(ctx, c, corev1.ClaimPending, nil)
}

// bindRequested checks the volume that a claim names.
func (b *volumeBinder) bindRequested(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	v, found := b.volumes.Get("", c.Spec.VolumeName)
	switch {
	case !found: // it may come
	case v.Spec.ClaimRef != nil && !isReservedFor(v, c):
		b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeWarning, "FailedBinding",
			fmt.Sprintf("volume %q already bound to a different claim.", v.Name))
	case v.Spec.ClaimRef == nil && mismatchReason(v, c) != "":
		b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeWarning, "VolumeMismatch",
			fmt.Sprintf("Cannot bind to requested volume %q: %s", v.Name, mismatchReason(v, c)))
	default:
		return b.bind(ctx, v, c)
	}
	return b.setClaimPhase(ctx, c, corev1.ClaimPending, nil)
}

// requestProvisioning asks a provisioner for a volume by writing its name on the claim.
func (b *volumeBinder) requestProvisioning(ctx context.Context, c *corev1.PersistentVolumeClaim, name string) error {
	err := b.changeClaim(ctx, c, "", func(c *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, provisioner, name)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, provisionerBefore, name)
	})
	b.recordEvent(ctx, c, volume.Claims, corev1.EventTypeNormal, "ExternalProvisioning",
		fmt.Sprintf("Waiting for a volume to be created either by the external provisioner '%s' "+
			"or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is "+
			"running and correctly registered.", name))
	return err
}

// recordEvent records an event, unless it repeats the last one.
func (b *volumeBinder) recordEvent(ctx context.Context, obj core.Object, of core.Resource, kind, reason, message string) {
	key := informer.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if b.lastEvents[key] == reason+message {
		return
	}
	b.lastEvents[key] = reason + message
	WriteEvent(ctx, b.events, registry.ControllerManager, events.New(&core.ObjectReference{
		Kind: of.Kind, APIVersion: of.GVK().GroupVersion().String(), Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}, corev1.EventSource{Component: "persistentvolume-controller"}, kind, reason, message, b.clock.Now()), b.logger)
}
