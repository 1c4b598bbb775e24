package housekeeping

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// This file decides about one object, and carries the decision out.

// ownerState is the state of one owner of an object.
type ownerState int

const (
	ownerStays ownerState = iota // or this can't be known here
	ownerWaits                   // for its dependents to go first
	ownerGone
)

// collect deletes an object if all its owners are gone or wait for it. If one
// stays, the object stays too, and no longer belongs to the others.
func (o *garbageCollector) collect(ctx context.Context, k *kind, key informer.Key, object owned) error {
	of := map[ownerState][]types.UID{}
	for _, owner := range object.owners {
		standing, err := o.ownerStateOf(ctx, key, owner)
		if err != nil {
			return err
		}
		of[standing] = append(of[standing], owner.UID)
	}
	leaving := slices.Concat(of[ownerWaits], of[ownerGone])
	switch {
	case len(leaving) == 0:
		return nil
	case len(of[ownerStays]) > 0:
		return removeOwnerReferences(ctx, k, key, object.uid, leaving)
	case len(of[ownerWaits]) > 0:
		return o.deleteInForeground(ctx, k, key, object)
	}
	return o.delete(ctx, k, key, object)
}

// ownerStateOf asks the informer first and, before anything is deleted because of
// the answer, the store. An owner of a kind that is not served counts as
// existing, and so does a namespaced owner of an object without a namespace.
func (o *garbageCollector) ownerStateOf(ctx context.Context, key informer.Key, owner metav1.OwnerReference) (ownerState, error) {
	k := o.kind(groupKindOf(owner))
	if k != nil && key.Namespace == "" && k.store.Info().Namespaced {
		return ownerStays, nil
	}
	o.mu.Lock()
	ended := o.goneOwners[owner.UID]
	o.mu.Unlock()
	switch {
	case ended:
		return ownerGone, nil
	case k == nil:
		return ownerStays, nil
	}
	at := k.keyOf(key.Namespace, owner.Name)
	if known, ok := k.informer.Get(at.Namespace, at.Name); ok && known.uid == owner.UID {
		if known.awaitedFinalizer() == metav1.FinalizerDeleteDependents {
			return ownerWaits, nil
		}
		return ownerStays, nil
	}
	encoded, err := k.store.Get(ctx, at.Namespace, at.Name, "")
	if apierrors.IsNotFound(err) {
		return ownerGone, nil
	}
	if err != nil {
		return ownerStays, fmt.Errorf("look up the owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	obj, err := k.store.Decode(encoded)
	if err != nil {
		return ownerStays, fmt.Errorf("decode the owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	if obj.GetUID() != owner.UID {
		return ownerGone, nil
	}
	return ownerStays, nil
}

// deleteInForeground deletes an object that an owner waits for, after its own dependents
// if it has any. In a cycle, one has to go first.
func (o *garbageCollector) deleteInForeground(ctx context.Context, k *kind, key informer.Key, object owned) error {
	dependents := o.dependentsOf(object.uid)
	if len(dependents) == 0 {
		return o.delete(ctx, k, key, object)
	}
	for d := range dependents {
		if o.awaitsDependents(d) {
			if err := clearBlockOwnerDeletion(ctx, k, key, object.uid); err != nil {
				return err
			}
			break
		}
	}
	object.finalizer = metav1.FinalizerDeleteDependents
	return o.delete(ctx, k, key, object)
}

func (o *garbageCollector) awaitsDependents(d dependent) bool {
	k := o.kind(d.kind)
	if k == nil {
		return false
	}
	object, ok := k.informer.Get(d.key.Namespace, d.key.Name)
	return ok && object.awaitedFinalizer() == metav1.FinalizerDeleteDependents
}

// delete deletes an object, unless its owners differ from what the informer says:
// the informer of its owners may be ahead of its own, and may have seen an owner go
// that had released the object before. The object is looked at again once its own
// informer has caught up.
func (o *garbageCollector) delete(ctx context.Context, k *kind, key informer.Key, object owned) error {
	encoded, err := k.store.Get(ctx, key.Namespace, key.Name, "")
	if err != nil {
		return ignoreNotFound(err, "read the dependent")
	}
	present, err := k.store.Decode(encoded)
	if err != nil {
		return fmt.Errorf("decode the dependent %s: %w", key, err)
	}
	if present.GetUID() != object.uid || !equality.Semantic.DeepEqual(present.GetOwnerReferences(), object.owners) {
		return nil
	}
	o.logger.Info("deleting an object whose owners are gone, or wait for that",
		zap.String("kind", k.store.Info().Kind), zap.String("object", key.String()), zap.String("uid", string(object.uid)))
	policy := metav1.DeletePropagationBackground
	switch object.finalizer {
	case metav1.FinalizerOrphanDependents:
		policy = metav1.DeletePropagationOrphan
	case metav1.FinalizerDeleteDependents:
		policy = metav1.DeletePropagationForeground
	}
	_, _, err = k.store.Delete(ctx, key.Namespace, key.Name, registry.Admission{}, &metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &object.uid, ResourceVersion: new(present.GetResourceVersion())},
	})
	return ignoreNotFound(err, "delete the dependent")
}

// deleteAfterDependents deletes the dependents of an object that is to go after
// them, and releases it when none is left that blocks it. An object does not
// wait for itself; others that wait are looked at when they no longer need to.
func (o *garbageCollector) deleteAfterDependents(ctx context.Context, k *kind, key informer.Key, object owned) error {
	held := false
	self := dependent{k.store.Info().GVK().GroupKind(), key}
	for d, blocks := range o.dependentsOf(object.uid) {
		if d == self {
			continue
		}
		if !o.awaitsDependents(d) {
			o.enqueue(d)
		}
		held = held || blocks
	}
	if held {
		return nil // looked at again when the last of them is gone
	}
	return removeFinalizer(ctx, k, key, object)
}

// orphanDependents removes an object from its dependents' owners, and releases it.
func (o *garbageCollector) orphanDependents(ctx context.Context, k *kind, key informer.Key, object owned) error {
	for d := range o.dependentsOf(object.uid) {
		of := o.kind(d.kind)
		if of == nil {
			return fmt.Errorf("the dependent %s %s can't be reached", d.kind, d.key)
		}
		if err := removeOwnerReferences(ctx, of, d.key, "", []types.UID{object.uid}); err != nil {
			return err
		}
	}
	return removeFinalizer(ctx, k, key, object)
}

func removeFinalizer(ctx context.Context, k *kind, key informer.Key, object owned) error {
	return k.change(ctx, target{key, object.uid}, "release the owner", func(current core.Object) {
		current.SetFinalizers(slices.DeleteFunc(current.GetFinalizers(), func(f string) bool { return f == object.finalizer }))
	})
}

// removeOwnerReferences removes the references to owners from a dependent; an empty uid means
// whichever object has the name.
func removeOwnerReferences(ctx context.Context, k *kind, key informer.Key, uid types.UID, owners []types.UID) error {
	return k.change(ctx, target{key, uid}, "take owners from the dependent", func(current core.Object) {
		current.SetOwnerReferences(slices.DeleteFunc(current.GetOwnerReferences(),
			func(r metav1.OwnerReference) bool { return slices.Contains(owners, r.UID) }))
	})
}

// clearBlockOwnerDeletion makes an object no longer block its owners.
func clearBlockOwnerDeletion(ctx context.Context, k *kind, key informer.Key, uid types.UID) error {
	return k.change(ctx, target{key, uid}, "let the dependent hold up nobody", func(current core.Object) {
		references := slices.Clone(current.GetOwnerReferences())
		for i := range references {
			references[i].BlockOwnerDeletion = nil
		}
		current.SetOwnerReferences(references)
	})
}

// target is one object, or if uid is empty, whichever has the key.
type target struct {
	key informer.Key
	uid types.UID
}

// change changes an object, if it is still the intended one; what names the
// change in errors.
func (k *kind) change(ctx context.Context, of target, what string, change func(current core.Object)) error {
	err := modify(ctx, k.store, registry.Target{Namespace: of.key.Namespace, Name: of.key.Name},
		func(current core.Object) (core.Object, error) {
			if of.uid == "" || current.GetUID() == of.uid {
				change(current)
			}
			return current, nil
		})
	return ignoreNotFound(err, what)
}
