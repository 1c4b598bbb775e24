package housekeeping

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// owned is what the loop knows of an object: its identity, its owners, and what
// its deletion waits for.
type owned struct {
	uid      types.UID
	owners   []metav1.OwnerReference
	deleting bool
	// finalizer is the one that decides what becomes of its dependents, if any.
	finalizer string
}

func ownedOf(obj core.Object) owned {
	o := owned{uid: obj.GetUID(), owners: obj.GetOwnerReferences(), deleting: obj.GetDeletionTimestamp() != nil}
	for _, f := range obj.GetFinalizers() {
		if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents {
			o.finalizer = f
		}
	}
	return o
}

// awaitedFinalizer is what the object's deletion waits for, concerning its dependents.
func (o *owned) awaitedFinalizer() string {
	if o.deleting {
		return o.finalizer
	}
	return ""
}

// blocks reports whether the object blocks an owner that is to go after its
// dependents.
func (o *owned) blocks(owner types.UID) bool {
	return slices.ContainsFunc(o.owners, func(r metav1.OwnerReference) bool {
		return r.UID == owner &&
			ptr.Deref(r.BlockOwnerDeletion, false)
	})
}

// garbageCollector is the garbage collection of dependents: an object all of whose owners
// are gone is deleted. An owner that is deleted with orphan or foreground
// propagation is held by a finalizer until its dependents are orphaned or gone
// (Kubernetes docs, "Garbage Collection").
type garbageCollector struct {
	kindsMu sync.RWMutex
	kinds   map[schema.GroupKind]*kind
	logger  *zap.Logger

	mu sync.Mutex
	// dependents by the uid of an owner, and whether they block its deletion.
	dependents map[types.UID]map[dependent]bool
	// goneOwners are owners known to be gone, whose kinds may be gone too, kept while
	// they have dependents.
	goneOwners map[types.UID]bool
}

type dependent struct {
	kind schema.GroupKind
	key  informer.Key
}

// dependentsAtOnce is upstream's number, but for each kind, so that one of a server that hangs
// holds up no other.
const dependentsAtOnce = 20

// kind is one resource that may own or be owned.
type kind struct {
	store    registry.Objects
	informer *informer.Informer[owned]
	worker   *worker
}

func newGarbageCollector(d *Dependencies) (Loop, error) {
	o := &garbageCollector{
		kinds: map[schema.GroupKind]*kind{}, logger: d.Logger, dependents: map[types.UID]map[dependent]bool{},
		goneOwners: map[types.UID]bool{},
	}
	var parts []func(context.Context) error
	var synced []<-chan struct{}
	for _, r := range d.Resources {
		if r.Info().Resource == core.Events { // too many, and they expire by themselves
			continue
		}
		k := o.addKind(d, r)
		parts = append(parts, k.informer.Run)
		synced = append(synced, k.informer.Synced())
	}
	for _, k := range o.kinds {
		parts = append(parts, afterSync(k.worker.run, synced...))
	}
	return runTogether(append(parts, o.followDynamicKinds(d, synced))...), nil
}

// addKind makes a resource known to the loop. The caller runs the kind's parts.
func (o *garbageCollector) addKind(d *Dependencies, r registry.Objects) *kind {
	gk := r.Info().GVK().GroupKind()
	k := &kind{store: r, informer: informer.New(r, ownedOf, informer.Options[owned]{}, d.Clock, d.Logger)}
	k.worker = newWorker("garbage-collector-controller", d, dependentsAtOnce,
		func(ctx context.Context, key informer.Key) (time.Duration, error) { return 0, o.sync(ctx, gk, key) })
	k.informer.OnChange(func(key informer.Key, old, now *owned) { o.handleChange(gk, key, old, now) })
	o.kindsMu.Lock()
	defer o.kindsMu.Unlock()
	o.kinds[gk] = k
	return k
}

// kind returns what is known of a kind; nil if nothing is.
func (o *garbageCollector) kind(gk schema.GroupKind) *kind {
	o.kindsMu.RLock()
	defer o.kindsMu.RUnlock()
	return o.kinds[gk]
}

// enqueue queues an object of a kind, if the kind still exists.
func (o *garbageCollector) enqueue(d dependent) {
	if k := o.kind(d.kind); k != nil {
		k.worker.add(d.key)
	}
}

// handleChange updates the index of dependents and queues the objects concerned.
func (o *garbageCollector) handleChange(gk schema.GroupKind, key informer.Key, old, now *owned) {
	self := dependent{gk, key}
	o.mu.Lock()
	defer o.mu.Unlock()
	if old != nil {
		o.removeFromIndex(self, old, now)
	}
	if old != nil && (now == nil || old.uid != now.uid) {
		if len(o.dependents[old.uid]) > 0 {
			o.goneOwners[old.uid] = true
		}
		for d := range o.dependents[old.uid] {
			o.enqueue(d)
		}
	}
	if now == nil {
		return
	}
	for _, owner := range now.owners {
		if o.dependents[owner.UID] == nil {
			o.dependents[owner.UID] = map[dependent]bool{}
		}
		o.dependents[owner.UID][self] = now.blocks(owner.UID)
	}
	if len(now.owners) > 0 || now.awaitedFinalizer() != "" {
		o.enqueue(self)
	}
}

// removeFromIndex removes an object from the index of its owners. Those that it may have
// blocked are queued.
func (o *garbageCollector) removeFromIndex(self dependent, old, now *owned) {
	for _, owner := range old.owners {
		delete(o.dependents[owner.UID], self)
		if len(o.dependents[owner.UID]) == 0 {
			delete(o.dependents, owner.UID)
			delete(o.goneOwners, owner.UID)
		}
		if now == nil || old.blocks(owner.UID) && !now.blocks(owner.UID) {
			o.addOwner(self.key.Namespace, owner)
		}
	}
}

func (o *garbageCollector) addOwner(namespace string, owner metav1.OwnerReference) {
	if k := o.kind(groupKindOf(owner)); k != nil {
		k.worker.add(k.keyOf(namespace, owner.Name))
	}
}

// enqueueOwnedBy queues all objects that have an owner of a kind: from now on
// that kind's objects are known.
func (o *garbageCollector) enqueueOwnedBy(gk schema.GroupKind) {
	o.kindsMu.RLock()
	defer o.kindsMu.RUnlock()
	for _, k := range o.kinds {
		k.informer.Each(func(key informer.Key, object owned) {
			for _, owner := range object.owners {
				if groupKindOf(owner) == gk {
					k.worker.add(key)
				}
			}
		})
	}
}

func groupKindOf(owner metav1.OwnerReference) schema.GroupKind {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return schema.GroupKind{}
	}
	return gv.WithKind(owner.Kind).GroupKind()
}

func (k *kind) keyOf(namespace, name string) informer.Key {
	if !k.store.Info().Namespaced {
		namespace = ""
	}
	return informer.Key{Namespace: namespace, Name: name}
}

func (o *garbageCollector) sync(ctx context.Context, gk schema.GroupKind, key informer.Key) error {
	k := o.kind(gk)
	if k == nil {
		return nil
	}
	object, ok := k.informer.Get(key.Namespace, key.Name)
	switch {
	case !ok:
		return nil
	case object.awaitedFinalizer() == metav1.FinalizerOrphanDependents:
		return o.orphanDependents(ctx, k, key, object)
	case object.awaitedFinalizer() == metav1.FinalizerDeleteDependents:
		return o.deleteAfterDependents(ctx, k, key, object)
	case object.deleting:
		return nil // it goes anyhow
	}
	return o.collect(ctx, k, key, object)
}

// dependentsOf are the dependents of an owner, and whether each blocks its deletion.
func (o *garbageCollector) dependentsOf(uid types.UID) map[dependent]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[dependent]bool, len(o.dependents[uid]))
	maps.Copy(out, o.dependents[uid])
	return out
}
