package eventhandlers

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
	Responsible(pod *core.Pod) bool         // no other scheduler is
	Add(ctx context.Context, pod *core.Pod) // or update it
	Delete(uid types.UID)
	MoveAllToActiveOrBackoffQueue(event framework.ClusterEvent)
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

// Nominator is notified of nominated pods, and of the pods that are evicted
// for them.
type Nominator interface {
	Set(pod *core.Pod, node string)
	Delete(uid types.UID)
	Taken(uid types.UID, node string)
	Of(uid types.UID) string
	Left(uid types.UID)
}

// WaitingPods is notified of pods that need no longer wait for a Permit plugin.
type WaitingPods interface {
	Reject(uid types.UID, plugin, reason string) bool
}

// Handlers route what the reflectors bring.
type Handlers struct {
	ctx   context.Context // of the run: PreEnqueue plugins are called with it
	queue Queue
	cache Cache

	nominator   Nominator
	waitingPods WaitingPods
	pods        *watch.Store[*core.Pod]
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

// New returns handlers whose calls into plugins end with ctx.
func New(ctx context.Context, keeps Keeps, queue Queue, cache Cache, nominator Nominator, waitingPods WaitingPods) *Handlers {
	h := &Handlers{ctx: ctx, keeps: keeps, queue: queue, cache: cache, nominator: nominator, waitingPods: waitingPods}
	h.pods = watch.NewStore(nil, watch.Handler[*core.Pod]{OnAdd: h.onPodAdd, OnUpdate: h.onPodUpdate, OnDelete: h.onPodDelete})
	return h
}

// KnownPods are all that have not ended.
func (h *Handlers) KnownPods() []*core.Pod { return h.pods.List() }

// Pods returns the sink for the pods' reflector.
func (h *Handlers) Pods() watch.Sink[*core.Pod] {
	return pods{whole: h.keeps == Whole, shared: newShared(), Store: h.pods}
}

// Nodes returns the sink for the nodes' reflector.
func (h *Handlers) Nodes() watch.Sink[*core.Node] {
	return nodes{whole: h.keeps == Whole, shared: newShared(), images: h.cache.SetImages, Store: watch.NewStore(nil, watch.Handler[*core.Node]{
		OnAdd: h.onNodeAdd, OnUpdate: h.onNodeUpdate, OnDelete: h.onNodeDelete,
	})}
}

func (h *Handlers) onPodAdd(pod *core.Pod) {
	switch {
	case core.Ended(pod.Status.Phase):
	case pod.Spec.NodeName != "":
		h.addAssignedPod(pod)
	case pod.DeletionTimestamp == nil && h.queue.Responsible(pod):
		h.nominated("", pod)
		h.queue.Add(h.ctx, pod)
	}
}

// nominated takes over the pod's nominatedNodeName from the API. If it has not
// changed, what preemption has decided since stays. A pod that is assumed on a
// node already counts there, and would count twice. Another scheduler's may never come:
// like kube-scheduler, this one keeps no room for it.
func (h *Handlers) nominated(before string, pod *core.Pod) {
	switch now := pod.Status.NominatedNodeName; {
	case h.cache.Has(pod.UID):
	case now == before:
		if node := h.nominator.Of(pod.UID); node != "" {
			h.nominator.Set(pod, node) // the pod may be another now
		}
	case now == "":
		h.nominator.Delete(pod.UID)
	default:
		h.nominator.Set(pod, now)
	}
}

// addAssignedPod handles a pod that got a node, from us or from another scheduler.
func (h *Handlers) addAssignedPod(pod *core.Pod) {
	h.cache.SetPod(pod) // before the queue: pods that wait there for this one's end look it up here
	h.queue.Delete(pod.UID)
	h.nominator.Taken(pod.UID, pod.Spec.NodeName)
	h.waitingPods.Reject(pod.UID, "", "the pod was bound by another")
	h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Add, NewPod: pod})
}

func (h *Handlers) onPodUpdate(old, pod *core.Pod) {
	switch {
	case core.Ended(pod.Status.Phase):
		h.onPodDelete(pod)
	case pod.Spec.NodeName == "":
		if pod.DeletionTimestamp != nil {
			h.nominator.Left(pod.UID)
			h.gone(pod)
		} else if h.queue.Responsible(pod) {
			h.nominated(old.Status.NominatedNodeName, pod)
			h.queue.Add(h.ctx, pod)
		}
	case old.Spec.NodeName == "":
		h.addAssignedPod(pod)
	default:
		h.updateAssignedPod(old, pod)
	}
}

// updateAssignedPod ignores a kubelet's many status reports, unless they change
// what the scheduler counts, or the pod's start time, by which preemption
// orders pods. Plugins and extenders that may look at anything learn of each.
func (h *Handlers) updateAssignedPod(old, pod *core.Pod) {
	var actions framework.ActionType
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
	if h.keeps == Whole && actions == 0 {
		actions = framework.UpdatePodOther
	}
	leaving := (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil)
	began := !old.Status.StartTime.Equal(pod.Status.StartTime)
	if counts || leaving || began || actions != 0 {
		h.cache.SetPod(pod)
	}
	if leaving {
		h.nominator.Left(pod.UID) // after the cache knows
	}
	if actions != 0 {
		h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: actions, OldPod: old, NewPod: pod,
		})
	}
}

// gone ends all waiting of a pod that needs no node any more.
func (h *Handlers) gone(pod *core.Pod) {
	h.queue.Delete(pod.UID)
	h.nominator.Delete(pod.UID)
	h.waitingPods.Reject(pod.UID, "", "the pod was deleted")
}

func (h *Handlers) onPodDelete(pod *core.Pod) {
	h.gone(pod)
	// It may have counted as assumed although the watch never showed a node.
	removed := h.cache.RemovePod(pod.UID)
	h.nominator.Left(pod.UID)
	if removed {
		h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: pod,
		})
	}
}

// OnExpired handles a pod that was counted out because the API never showed it on the
// node to which it was said to be bound, as an extender may say without doing it. A pod
// that the API shows without a node is scheduled again.
func (h *Handlers) OnExpired(expired *core.Pod) {
	h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
		Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: expired,
	})
	var added *core.Pod
	for {
		pod, waits := h.waiting(expired)
		switch {
		case !waits && added != nil:
			h.queue.Delete(expired.UID)
			return
		case !waits || pod == added:
			return
		}
		h.queue.Add(h.ctx, pod)
		added = pod // but the watch may have told the queue of a later state before
	}
}

// waiting is the pod as the API shows it, if it waits for a node there.
func (h *Handlers) waiting(pod *core.Pod) (stored *core.Pod, waits bool) {
	stored, known := h.pods.Get(pod.Namespace, pod.Name)
	return stored, known && stored.UID == pod.UID && stored.Spec.NodeName == "" && stored.DeletionTimestamp == nil &&
		!core.Ended(stored.Status.Phase)
}

func (h *Handlers) onNodeAdd(node *core.Node) {
	h.cache.SetNode(node)
	h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.Add, NewNode: node})
}

func (h *Handlers) onNodeUpdate(old, node *core.Node) {
	actions := framework.NodeActions(old, node)
	heartbeat := actions == 0
	if !heartbeat || h.keeps == Whole {
		h.cache.SetNode(node)
	}
	if heartbeat {
		return
	}
	h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
		Resource: framework.NodeEvent, ActionType: actions, OldNode: old, NewNode: node,
	})
}

// onNodeDelete frees no room, but it changes how pods are spread.
func (h *Handlers) onNodeDelete(node *core.Node) {
	h.cache.RemoveNode(node.Name)
	h.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.Delete, OldNode: node})
}
