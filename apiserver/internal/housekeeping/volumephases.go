package housekeeping

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/volume"
	"kctl/proto/core"
)

// errTaken ends a binding at which another binder was faster.
var errTaken = errors.New("the volume has meanwhile been bound to another claim")

// bind binds a volume and a claim to each other, the volume first: any binder that
// finds an unfinished binding completes it.
func (b *volumeBinder) bind(ctx context.Context, v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) error {
	if ref := v.Spec.ClaimRef; ref == nil || ref.UID == "" {
		// The reference names the claim's version, which what an informer has may lack.
		stored, err := b.getClaim(ctx, informer.Key{Namespace: c.Namespace, Name: c.Name}, c.UID)
		if err != nil {
			return ignoreNotFound(err, "read the claim that a volume is bound to")
		}
		c = stored
	}
	v, err := b.changeVolume(ctx, v, "", func(v *corev1.PersistentVolume) error {
		ref := v.Spec.ClaimRef
		switch {
		case ref != nil && !isReservedFor(v, c), ref == nil && v.DeletionTimestamp != nil:
			return errTaken
		case ref == nil:
			metav1.SetMetaDataAnnotation(&v.ObjectMeta, boundByController, "yes")
		case ref.UID != "":
			return nil
		}
		v.Spec.ClaimRef = &corev1.ObjectReference{
			APIVersion: "v1", Kind: volume.Claims.Kind, Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion,
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.setVolumePhase(ctx, v, corev1.VolumeBound, ""); err != nil {
		return err
	}
	elsewhere := false
	err = b.changeClaim(ctx, c, "", func(c *corev1.PersistentVolumeClaim) {
		if elsewhere = c.Spec.VolumeName != "" && c.Spec.VolumeName != v.Name; elsewhere {
			return // the volume is released when it is next looked at
		}
		if c.Spec.VolumeName == "" {
			c.Spec.VolumeName = v.Name
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, boundByController, "yes")
		}
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, bindCompleted, "yes")
	})
	if err != nil || elsewhere {
		return err
	}
	return b.setClaimPhase(ctx, c, corev1.ClaimBound, v)
}

// syncVolume maintains the phase of a volume, and releases one that is bound in vain.
func (b *volumeBinder) syncVolume(ctx context.Context, v *corev1.PersistentVolume) error {
	if v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == "" {
		return b.setVolumePhase(ctx, v, corev1.VolumeAvailable, "")
	}
	key := claimOf(v)
	c, err := b.getClaim(ctx, key, v.Spec.ClaimRef.UID)
	switch {
	case apierrors.IsNotFound(err):
		return b.releaseVolume(ctx, v)
	case err != nil:
		return err
	case c.Spec.VolumeName == "":
		b.worker.add(key)
		return nil
	case c.Spec.VolumeName == v.Name:
		return b.setVolumePhase(ctx, v, corev1.VolumeBound, "")
	case v.Annotations[provisionedBy] != "" && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return b.releaseVolume(ctx, v)
	}
	v, err = b.changeVolume(ctx, v, "", func(v *corev1.PersistentVolume) error {
		if !isReservedFor(v, c) {
			return nil
		}
		if _, ours := v.Annotations[boundByController]; ours {
			v.Spec.ClaimRef = nil
			delete(v.Annotations, boundByController)
		} else {
			v.Spec.ClaimRef.UID = "" // it was reserved for the claim before, and is again
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.setVolumePhase(ctx, v, corev1.VolumeAvailable, "")
}

// getClaim reads a claim as stored now: a volume is given up without one.
func (b *volumeBinder) getClaim(ctx context.Context, key informer.Key, uid types.UID) (*corev1.PersistentVolumeClaim, error) {
	claim, err := registry.GetStored[*corev1.PersistentVolumeClaim](ctx, b.claimStore, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	if claim.GetUID() != uid {
		return nil, apierrors.NewNotFound(volume.Claims.GVR().GroupResource(), key.Name) // another of its name
	}
	return claim, nil
}

// releaseVolume marks a volume whose claim is gone. Removing its content is up to its
// provisioner, or to whoever created it by hand.
func (b *volumeBinder) releaseVolume(ctx context.Context, v *corev1.PersistentVolume) error {
	if v.Status.Phase != corev1.VolumeFailed {
		if err := b.setVolumePhase(ctx, v, corev1.VolumeReleased, ""); err != nil {
			return err
		}
	}
	reason, message := "", ""
	switch v.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimDelete:
		if by := v.Annotations[provisionedBy]; by != "" && !strings.HasPrefix(by, "kubernetes.io/") || v.Spec.CSI != nil {
			return nil // they see it
		}
		reason, message = "VolumeFailedDelete",
			fmt.Sprintf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched", v.Name)
	case corev1.PersistentVolumeReclaimRecycle:
		reason, message = "VolumeFailedRecycle", "No recycler plugin found for the volume!"
	default:
		return nil
	}
	b.recordEvent(ctx, v, volume.Volumes, corev1.EventTypeWarning, reason, message)
	return b.setVolumePhase(ctx, v, corev1.VolumeFailed, message)
}

// setVolumePhase records the phase of a volume, if it still has the claim, or none, from which
// that was derived.
func (b *volumeBinder) setVolumePhase(ctx context.Context, v *corev1.PersistentVolume, phase corev1.PersistentVolumePhase,
	message string) error {
	if v.Status.Phase == phase {
		return nil
	}
	_, err := b.changeVolume(ctx, v, "status", func(current *corev1.PersistentVolume) error {
		if current.Status.Phase != phase && boundTo(current) == boundTo(v) {
			current.Status.Phase, current.Status.Message = phase, message
		}
		return nil
	})
	return err
}

// setClaimPhase records the phase of a claim, and what it gets from the volume it is bound to.
func (b *volumeBinder) setClaimPhase(ctx context.Context, c *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase,
	v *corev1.PersistentVolume) error {
	return b.changeClaim(ctx, c, "status", func(c *corev1.PersistentVolumeClaim) {
		s := &c.Status
		turned := s.Phase != phase
		s.Phase = phase
		if v == nil {
			s.AccessModes, s.Capacity, s.CurrentVolumeAttributesClassName = nil, nil, nil
			return
		}
		if !slices.Equal(s.AccessModes, v.Spec.AccessModes) {
			s.AccessModes = v.Spec.AccessModes
		}
		if turned { // afterwards its resizer maintains the size
			s.Capacity, s.CurrentVolumeAttributesClassName = v.Spec.Capacity, v.Spec.VolumeAttributesClassName
		}
	})
}

// changeVolume changes the intended volume, and not another of its name, and
// returns the result.
func (b *volumeBinder) changeVolume(ctx context.Context, meant *corev1.PersistentVolume, subresource string,
	f func(v *corev1.PersistentVolume) error) (*corev1.PersistentVolume, error) {
	err := modify(ctx, b.volumeStore, registry.Target{Name: meant.Name, Subresource: subresource},
		func(current core.Object) (core.Object, error) {
			if v := current.(*corev1.PersistentVolume); v.UID == meant.UID {
				err := f(v)
				meant = v
				return v, err
			}
			return current, nil
		})
	return meant, ignoreNotFound(err, "change a persistent volume")
}

func (b *volumeBinder) changeClaim(ctx context.Context, meant *corev1.PersistentVolumeClaim, subresource string,
	f func(c *corev1.PersistentVolumeClaim)) error {
	err := modify(ctx, b.claimStore, registry.Target{Namespace: meant.Namespace, Name: meant.Name, Subresource: subresource},
		func(current core.Object) (core.Object, error) {
			if c := current.(*corev1.PersistentVolumeClaim); c.UID == meant.UID {
				f(c)
			}
			return current, nil
		})
	return ignoreNotFound(err, "change a claim")
}
