package feed

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
)

// PodSelector leaves out the pods that ended, as upstream's scheduler does.
const PodSelector = "status.phase!=Succeeded,status.phase!=Failed"

// Queue is notified of waiting pods.
type Queue interface {
	Add(ctx context.Context, pod *core.Pod) // or update it
	Delete(uid types.UID)
	Move(event framework.Event)
}

// Cache is notified of nodes and the pods on them.
type Cache interface {
	// SetImages comes before SetNode.
	SetImages(nodeName string, images []corev1.ContainerImage)
	SetNode(node *core.Node)
	RemoveNode(name string)
	SetPod(pod *core.Pod)
	Has(uid types.UID) bool
	RemovePod(uid types.UID) bool
}

// Nominations is notified of nominated pods, and of the pods that are evicted
// for them.
type Nominations interface {
	Set(pod *core.Pod, node string)
	Delete(uid types.UID)
	Taken(uid types.UID, node string)
	Of(uid types.UID) string
	Left(uid types.UID)
}

// Permits is notified of pods that need no longer wait for a Permit plugin.
type Permits interface {
	Reject(uid types.UID, plugin, reason string) bool
}

// Feed routes what the reflectors bring.
type Feed struct {
	ctx   context.Context // of the run: PreEnqueue plugins are called with it
	queue Queue
	cache Cache

	nominations Nominations
	permits     Permits
	known       *watch.Store[*core.Pod]
	keeps       Keeps
}

// Keeps says what is kept of pods and nodes.
type Keeps bool

const (
	// Slim keeps what the plugins of this program look at.
	Slim Keeps = false
	// Whole keeps everything, for plugins and extenders that may look at anything.
	Whole Keeps = true
)

// New returns a feed whose calls into plugins end with ctx.
func New(ctx context.Context, keeps Keeps, queue Queue, cache Cache, nominations Nominations, permits Permits) *Feed {
	f := &Feed{ctx: ctx, keeps: keeps, queue: queue, cache: cache, nominations: nominations, permits: permits}
	f.known = watch.NewStore(nil, watch.Handler[*core.Pod]{OnAdd: f.podAdded, OnUpdate: f.podUpdated, OnDelete: f.podDeleted})
	return f
}

// KnownPods are all that have not ended.
func (f *Feed) KnownPods() []*core.Pod { return f.known.List() }

// Pods returns the sink for the pods' reflector.
func (f *Feed) Pods() watch.Sink[*core.Pod] {
	return pods{whole: f.keeps == Whole, shared: newShared(), Store: f.known}
}

// Nodes returns the sink for the nodes' reflector.
func (f *Feed) Nodes() watch.Sink[*core.Node] {
	return nodes{whole: f.keeps == Whole, shared: newShared(), images: f.cache.SetImages, Store: watch.NewStore(nil, watch.Handler[*core.Node]{
		OnAdd: f.nodeAdded, OnUpdate: f.nodeUpdated, OnDelete: f.nodeDeleted,
	})}
}

func ended(pod *core.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (f *Feed) podAdded(pod *core.Pod) {
	switch {
	case ended(pod):
	case pod.Spec.NodeName != "":
		f.assigned(pod)
	case pod.DeletionTimestamp == nil:
		f.nominated("", pod)
		f.queue.Add(f.ctx, pod)
	}
}

// nominated takes over the pod's nominatedNodeName from the API. If it has not
// changed, what preemption has decided since stays. A pod that is assumed on a
// node already counts there, and would count twice.
func (f *Feed) nominated(before string, pod *core.Pod) {
	switch now := pod.Status.NominatedNodeName; {
	case f.cache.Has(pod.UID):
	case now == before:
		if node := f.nominations.Of(pod.UID); node != "" {
			f.nominations.Set(pod, node) // the pod may be another now
		}
	case now == "":
		f.nominations.Delete(pod.UID)
	default:
		f.nominations.Set(pod, now)
	}
}

// assigned handles a pod that got a node, from us or from another scheduler.
func (f *Feed) assigned(pod *core.Pod) {
	f.cache.SetPod(pod) // before the queue: pods that wait there for this one's end look it up here
	f.queue.Delete(pod.UID)
	f.nominations.Taken(pod.UID, pod.Spec.NodeName)
	f.permits.Reject(pod.UID, "", "the pod was bound by another")
	f.queue.Move(framework.Event{Resource: framework.AssignedPodEvent, Action: framework.Add, NewPod: pod})
}

func (f *Feed) podUpdated(old, pod *core.Pod) {
	switch {
	case ended(pod):
		f.podDeleted(pod)
	case pod.Spec.NodeName == "":
		if pod.DeletionTimestamp != nil {
			f.nominations.Left(pod.UID)
			f.gone(pod)
			return
		}
		f.nominated(old.Status.NominatedNodeName, pod)
		f.queue.Add(f.ctx, pod)
	case old.Spec.NodeName == "":
		f.assigned(pod)
	default:
		f.assignedUpdated(old, pod)
	}
}

// assignedUpdated ignores a kubelet's many status reports, unless they change
// what the scheduler counts, or the pod's start time, by which preemption
// orders pods.
func (f *Feed) assignedUpdated(old, pod *core.Pod) {
	var actions framework.Action
	if framework.PodActions(old, pod)&framework.UpdatePodLabel != 0 {
		actions |= framework.UpdatePodLabel
	}
	counts := !apiequality.Semantic.DeepEqual(old.Spec, pod.Spec) ||
		!apiequality.Semantic.DeepEqual(old.Status.ContainerStatuses, pod.Status.ContainerStatuses) ||
		!apiequality.Semantic.DeepEqual(old.Status.InitContainerStatuses, pod.Status.InitContainerStatuses) ||
		!apiequality.Semantic.DeepEqual(old.Status.Resources, pod.Status.Resources) ||
		!apiequality.Semantic.DeepEqual(old.Status.AllocatedResources, pod.Status.AllocatedResources)
	if counts && framework.PodScaledDown(old, pod) {
		actions |= framework.UpdatePodScaleDown
	}
	leaving := (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil)
	began := !old.Status.StartTime.Equal(pod.Status.StartTime)
	if counts || leaving || began || actions != 0 {
		f.cache.SetPod(pod)
	}
	if leaving {
		f.nominations.Left(pod.UID) // after the cache knows
	}
	if actions != 0 {
		f.queue.Move(framework.Event{
			Resource: framework.AssignedPodEvent, Action: actions, OldPod: old, NewPod: pod,
		})
	}
}

// gone ends all waiting of a pod that needs no node any more.
func (f *Feed) gone(pod *core.Pod) {
	f.queue.Delete(pod.UID)
	f.nominations.Delete(pod.UID)
	f.permits.Reject(pod.UID, "", "the pod was deleted")
}

func (f *Feed) podDeleted(pod *core.Pod) {
	f.gone(pod)
	// It may have counted as assumed although the watch never showed a node.
	removed := f.cache.RemovePod(pod.UID)
	f.nominations.Left(pod.UID)
	if removed {
		f.queue.Move(framework.Event{Resource: framework.AssignedPodEvent, Action: framework.Delete, OldPod: pod})
	}
}

func (f *Feed) nodeAdded(node *core.Node) {
	f.cache.SetNode(node)
	f.queue.Move(framework.Event{Resource: framework.NodeEvent, Action: framework.Add, NewNode: node})
}

func (f *Feed) nodeUpdated(old, node *core.Node) {
	actions := framework.NodeActions(old, node)
	if actions == 0 {
		return // a heartbeat
	}
	f.cache.SetNode(node)
	f.queue.Move(framework.Event{Resource: framework.NodeEvent, Action: actions, OldNode: old, NewNode: node})
}

// nodeDeleted frees no room, but it changes how pods are spread.
func (f *Feed) nodeDeleted(node *core.Node) {
	f.cache.RemoveNode(node.Name)
	f.queue.Move(framework.Event{Resource: framework.NodeEvent, Action: framework.Delete, OldNode: node})
}
