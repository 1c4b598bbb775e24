package housekeeping

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/facts"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// owned is what the loop knows of an object: who it is, whom it belongs to, and
// what its end waits for.
type owned struct {
	uid    types.UID
	owners []metav1.OwnerReference
	// Set where the object is being deleted and waits for its dependents.
	waits string
}

func ownedOf(obj core.Object) owned {
	o := owned{uid: obj.GetUID(), owners: obj.GetOwnerReferences()}
	if obj.GetDeletionTimestamp() != nil {
		for _, f := range obj.GetFinalizers() {
			if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents {
				o.waits = f
			}
		}
	}
	return o
}

// owners is the garbage collection of dependents: an object all of whose owners
// are gone is deleted. An owner that is deleted with the wish to orphan its
// dependents, or to see them gone first, is held by a finalizer until that is
// done.
type owners struct {
	all    sync.RWMutex
	kinds  map[schema.GroupKind]*kind
	logger *zap.Logger

	mu sync.Mutex
	// dependents by the uid of an owner.
	dependents map[types.UID]map[dependent]bool
	// ended are owners that are known to be gone, of kinds that may be gone too,
	// for as long as they have dependents.
	ended map[types.UID]bool
}

type dependent struct {
	kind schema.GroupKind
	key  facts.Key
}

// kind is one resource that may own or be owned.
type kind struct {
	store  registry.Resource
	mirror *facts.Mirror[owned]
	worker *worker
}

func newOwners(d *Dependencies) (Loop, error) {
	o := &owners{kinds: map[schema.GroupKind]*kind{}, logger: d.Logger, dependents: map[types.UID]map[dependent]bool{}, ended: map[types.UID]bool{}}
	var parts []func(context.Context) error
	var synced []<-chan struct{}
	for _, r := range d.Resources {
		info := r.Info()
		if info.Resource == core.Events { // too many, and they go by themselves
			continue
		}
		k := o.add(d, r)
		parts = append(parts, k.mirror.Run)
		synced = append(synced, k.mirror.Synced())
	}
	for _, k := range o.kinds {
		parts = append(parts, after(k.worker.run, synced...))
	}
	if d.More != nil {
		parts = append(parts, o.grow(d, synced))
	}
	return together(parts...), nil
}

// add has the loop know of a resource. Whoever calls it runs the kind's parts.
func (o *owners) add(d *Dependencies, r registry.Resource) *kind {
	gk := r.Info().GVK().GroupKind()
	k := &kind{store: r, mirror: facts.NewMirror(r, ownedOf, facts.Options[owned]{}, d.Clock, d.Logger)}
	k.worker = newWorker("garbage-collector-controller", d, func(ctx context.Context, key facts.Key) (time.Duration, error) {
		return o.sync(ctx, gk, key)
	})
	k.mirror.OnChange(func(key facts.Key, old, now *owned) { o.changed(gk, key, old, now) })
	o.all.Lock()
	defer o.all.Unlock()
	o.kinds[gk] = k
	return k
}

// kind is what is known of a kind, nil where nothing is.
func (o *owners) kind(gk schema.GroupKind) *kind {
	o.all.RLock()
	defer o.all.RUnlock()
	return o.kinds[gk]
}

// look has an object of a kind looked at, if the kind is still there.
func (o *owners) look(d dependent) {
	if k := o.kind(d.kind); k != nil {
		k.worker.add(d.key)
	}
}

// changed keeps the index of dependents and asks to look at whom it concerns.
func (o *owners) changed(gk schema.GroupKind, key facts.Key, old, now *owned) {
	self := dependent{gk, key}
	o.mu.Lock()
	defer o.mu.Unlock()
	if old != nil {
		for _, owner := range old.owners {
			delete(o.dependents[owner.UID], self)
			if len(o.dependents[owner.UID]) == 0 {
				delete(o.dependents, owner.UID)
				delete(o.ended, owner.UID)
			}
			if now == nil { // it may be the last that its owner waits for
				o.addOwner(key.Namespace, owner)
			}
		}
	}
	if now == nil || old != nil && old.uid != now.uid {
		if len(o.dependents[old.uid]) > 0 {
			o.ended[old.uid] = true
		}
		for d := range o.dependents[old.uid] {
			o.look(d)
		}
	}
	if now == nil {
		return
	}
	for _, owner := range now.owners {
		if o.dependents[owner.UID] == nil {
			o.dependents[owner.UID] = map[dependent]bool{}
		}
		o.dependents[owner.UID][self] = true
	}
	if len(now.owners) > 0 || now.waits != "" {
		o.look(self)
	}
}

func (o *owners) addOwner(namespace string, owner metav1.OwnerReference) {
	if k := o.kind(groupKindOf(owner)); k != nil {
		k.worker.add(k.keyOf(namespace, owner.Name))
	}
}

func groupKindOf(owner metav1.OwnerReference) schema.GroupKind {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return schema.GroupKind{}
	}
	return gv.WithKind(owner.Kind).GroupKind()
}

func (k *kind) keyOf(namespace, name string) facts.Key {
	if !k.store.Info().Namespaced {
		namespace = ""
	}
	return facts.Key{Namespace: namespace, Name: name}
}

func (o *owners) sync(ctx context.Context, gk schema.GroupKind, key facts.Key) (time.Duration, error) {
	k := o.kind(gk)
	if k == nil {
		return 0, nil
	}
	object, ok := k.mirror.Get(key.Namespace, key.Name)
	if !ok {
		return 0, nil
	}
	if object.waits != "" {
		return 0, o.release(ctx, k, key, object)
	}
	return 0, o.collect(ctx, k, key, object)
}

// collect deletes an object all of whose owners are gone. An owner of a kind
// that is not served counts as there: nobody here can tell.
func (o *owners) collect(ctx context.Context, k *kind, key facts.Key, object owned) error {
	if len(object.owners) == 0 {
		return nil
	}
	for _, owner := range object.owners {
		gone, err := o.gone(ctx, key.Namespace, owner)
		if err != nil || !gone {
			return err
		}
	}
	o.logger.Info("deleting an object whose owners are gone",
		zap.String("kind", k.store.Info().Kind), zap.String("object", key.String()), zap.String("uid", string(object.uid)))
	background := metav1.DeletePropagationBackground
	_, _, err := k.store.Delete(ctx, key.Namespace, key.Name, registry.Admit{}, &metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &object.uid},
	})
	return ignoreGone(err, "delete the dependent")
}

// gone asks the mirror first and, before anything is deleted for it, the store.
func (o *owners) gone(ctx context.Context, namespace string, owner metav1.OwnerReference) (bool, error) {
	o.mu.Lock()
	ended := o.ended[owner.UID]
	o.mu.Unlock()
	if ended {
		return true, nil
	}
	k := o.kind(groupKindOf(owner))
	if k == nil {
		return false, nil
	}
	key := k.keyOf(namespace, owner.Name)
	if known, ok := k.mirror.Get(key.Namespace, key.Name); ok && known.uid == owner.UID {
		// An owner that waits for its dependents lets them go.
		return known.waits == metav1.FinalizerDeleteDependents, nil
	}
	encoded, err := k.store.Get(ctx, key.Namespace, key.Name, "")
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up the owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	obj, err := k.store.Decode(encoded)
	if err != nil {
		return false, fmt.Errorf("decode the owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	return obj.GetUID() != owner.UID, nil
}

// release deals with the dependents of an object that waits for that, and lets
// it go when none is left.
func (o *owners) release(ctx context.Context, k *kind, key facts.Key, object owned) error {
	left := o.dependentsOf(object.uid)
	for _, d := range left {
		if object.waits == metav1.FinalizerDeleteDependents {
			o.look(d)
			continue
		}
		if err := o.orphan(ctx, d, object.uid); err != nil {
			return err
		}
	}
	if len(left) > 0 && object.waits == metav1.FinalizerDeleteDependents {
		return nil // comes back when the last of them is gone
	}
	_, _, err := k.store.Update(ctx, key.Namespace, key.Name, "", func(current core.Object) (core.Object, error) {
		if current.GetUID() == object.uid {
			current.SetFinalizers(slices.DeleteFunc(current.GetFinalizers(), func(f string) bool { return f == object.waits }))
		}
		return current, nil
	}, registry.Admit{}, &metav1.UpdateOptions{})
	return ignoreGone(err, "release the owner")
}

func (o *owners) dependentsOf(uid types.UID) []dependent {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]dependent, 0, len(o.dependents[uid]))
	for d := range o.dependents[uid] {
		out = append(out, d)
	}
	return out
}

// orphan takes the reference to an owner out of a dependent.
func (o *owners) orphan(ctx context.Context, d dependent, owner types.UID) error {
	k := o.kind(d.kind)
	if k == nil {
		return nil
	}
	_, _, err := k.store.Update(ctx, d.key.Namespace, d.key.Name, "", func(current core.Object) (core.Object, error) {
		current.SetOwnerReferences(slices.DeleteFunc(current.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }))
		return current, nil
	}, registry.Admit{}, &metav1.UpdateOptions{})
	return ignoreGone(err, "orphan the dependent")
}
