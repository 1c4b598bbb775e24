package volumes

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
)

// patience is how long the first pods with claims wait for the initial lists.
const patience = 5 * time.Second

var errUnknown = errors.New("persistent volumes and claims are not known yet")

// Volumes is safe for concurrent use.
type Volumes struct {
	clock clock.Clock
	// moved is called with events that may let a waiting pod be placed.
	moved func(framework.ClusterEvent)

	claims     *watch.Store[*corev1.PersistentVolumeClaim]
	volumes    *watch.Store[*corev1.PersistentVolume]
	classes    *watch.Store[*storagev1.StorageClass]
	nodes      *watch.Store[*storagev1.CSINode]
	drivers    *watch.Store[*storagev1.CSIDriver]
	capacities *watch.Store[*storagev1.CSIStorageCapacity]
	attached   *watch.Store[*storagev1.VolumeAttachment]

	once   sync.Once
	wanted chan struct{}
	known  chan struct{}

	mu       sync.Mutex
	deadline time.Time            // of patience
	chosen   map[string]types.UID // volume → the claim that it was chosen for
	changed  chan struct{}        // closed with the next change of a claim or volume
}

const byClass, byNode = "class", "node"

// New returns an empty Volumes that watches nothing until it is asked.
func New(clock clock.Clock, moved func(framework.ClusterEvent)) *Volumes {
	v := &Volumes{
		clock: clock, moved: moved, wanted: make(chan struct{}), known: make(chan struct{}),
		chosen: map[string]types.UID{}, changed: make(chan struct{}),
	}
	v.claims = watch.NewStore(nil, watch.Handler[*corev1.PersistentVolumeClaim]{
		OnAdd:    func(c *corev1.PersistentVolumeClaim) { v.tell(framework.ClaimEvent, framework.Add, c) },
		OnUpdate: func(_, c *corev1.PersistentVolumeClaim) { v.tell(framework.ClaimEvent, framework.Update, c) },
		OnDelete: func(*corev1.PersistentVolumeClaim) { v.wake() },
	})
	v.volumes = watch.NewStore(map[string]watch.IndexFunc[*corev1.PersistentVolume]{
		byClass: func(pv *corev1.PersistentVolume) []string { return []string{pv.Spec.StorageClassName} },
	}, telling[*corev1.PersistentVolume](v, framework.VolumeEvent))
	v.classes = watch.NewStore(nil, tellingIf(v, framework.ClassEvent, topologiesChanged))
	v.nodes = watch.NewStore(nil, tellingIf(v, framework.NodeVolumesEvent, limitsGrew))
	v.drivers = watch.NewStore(nil, tellingIf(v, framework.CapacityEvent, capacityUncounted))
	v.capacities = watch.NewStore(map[string]watch.IndexFunc[*storagev1.CSIStorageCapacity]{
		byClass: func(c *storagev1.CSIStorageCapacity) []string { return []string{c.StorageClassName} },
	}, tellingIf(v, framework.CapacityEvent, capacityGrew))
	v.attached = watch.NewStore(map[string]watch.IndexFunc[*storagev1.VolumeAttachment]{
		byNode: func(a *storagev1.VolumeAttachment) []string { return []string{a.Spec.NodeName} },
	}, watch.Handler[*storagev1.VolumeAttachment]{
		OnDelete: func(*storagev1.VolumeAttachment) { v.tell(framework.AttachmentEvent, framework.Delete, nil) },
	})
	return v
}

func telling[T core.Object](v *Volumes, resource framework.EventResource) watch.Handler[T] {
	return tellingIf(v, resource, func(_, _ T) bool { return true })
}

// tellingIf tells of new objects, and of changes that may help a waiting pod.
func tellingIf[T core.Object](v *Volumes, resource framework.EventResource, helps func(before, after T) bool) watch.Handler[T] {
	return watch.Handler[T]{
		OnAdd: func(T) { v.tell(resource, framework.Add, nil) },
		OnUpdate: func(before, after T) {
			if helps(before, after) {
				v.tell(resource, framework.Update, nil)
			} else {
				v.wake()
			}
		},
	}
}

func (v *Volumes) tell(resource framework.EventResource, action framework.ActionType, claim *corev1.PersistentVolumeClaim) {
	v.wake()
	v.moved(framework.ClusterEvent{Resource: resource, ActionType: action, Claim: claim})
}

func (v *Volumes) wake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.changed)
	v.changed = make(chan struct{})
}

// Changed is closed with the next change.
func (v *Volumes) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Run watches, from the first question on, until ctx ends.
func (v *Volumes) Run(ctx context.Context, client *rest.Client, options watch.Options) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-v.wanted:
	}
	group, ctx := errgroup.WithContext(ctx)
	all := []reflector{
		watching(client, ClaimResource, v.claims, options), watching(client, VolumeResource, v.volumes, options),
		watching(client, storageClasses, v.classes, options), watching(client, csiNodes, v.nodes, options),
		watching(client, csiDrivers, v.drivers, options), watching(client, csiStorageCapacities, v.capacities, options),
		watching(client, volumeAttachments, v.attached, options),
	}
	for _, r := range all {
		group.Go(func() error { return r.Run(ctx) })
	}
	group.Go(func() error {
		for _, r := range all {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-r.Synced():
			}
		}
		close(v.known)
		return nil
	})
	return group.Wait()
}

// ClaimResource and VolumeResource are where the plugin that binds writes.
var (
	ClaimResource  = core.PersistentVolumeClaims
	VolumeResource = core.PersistentVolumes
)

var (
	storageClasses       = core.Resource{Group: storagev1.GroupName, Version: "v1", Name: "storageclasses", Kind: "StorageClass"}
	csiNodes             = core.Resource{Group: storagev1.GroupName, Version: "v1", Name: "csinodes", Kind: "CSINode"}
	csiDrivers           = core.Resource{Group: storagev1.GroupName, Version: "v1", Name: "csidrivers", Kind: "CSIDriver"}
	csiStorageCapacities = core.Resource{
		Group:      storagev1.GroupName,
		Version:    "v1",
		Name:       "csistoragecapacities",
		Kind:       "CSIStorageCapacity",
		Namespaced: true,
	}
	volumeAttachments = core.Resource{Group: storagev1.GroupName, Version: "v1", Name: "volumeattachments", Kind: "VolumeAttachment"}
)

type reflector interface {
	Run(ctx context.Context) error
	Synced() <-chan struct{}
}

func watching[T any, P interface {
	*T
	core.Object
}](client *rest.Client, resource core.Resource, store *watch.Store[P], options watch.Options) reflector {
	return watch.NewReflector(client.Resource(resource, ""), func() P { return new(T) }, slim[P]{store}, options)
}

// slim passes objects on without their unused parts. It is a watch.Keeper.
type slim[P core.Object] struct{ *watch.Store[P] }

var _ watch.Keeper[*corev1.PersistentVolume] = slim[*corev1.PersistentVolume]{}

func (s slim[P]) Replace(objects []P) {
	for _, o := range objects {
		if len(o.GetManagedFields()) > 0 { // one that is kept is being read
			o.SetManagedFields(nil)
		}
	}
	s.Store.Replace(objects)
}

func (s slim[P]) Apply(t watch.Type, o P) {
	o.SetManagedFields(nil)
	s.Store.Apply(t, o)
}

// Ready starts all watches and, the first time, waits a little until their
// lists are there.
func (v *Volumes) Ready(ctx context.Context) error {
	v.once.Do(func() {
		v.mu.Lock()
		v.deadline = v.clock.Now().Add(patience)
		v.mu.Unlock()
		close(v.wanted)
	})
	select {
	case <-v.known:
		return nil
	default:
	}
	v.mu.Lock()
	left := v.deadline.Sub(v.clock.Now())
	v.mu.Unlock()
	if left <= 0 {
		return errUnknown
	}
	timer := v.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-v.known:
		return nil
	case <-timer.C():
		return errUnknown
	case <-ctx.Done():
		return ctx.Err()
	}
}
