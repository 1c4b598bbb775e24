package housekeeping

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

const (
	podGarbageInterval = 20 * time.Second
	// missingNodeGrace is how long a pod outlives its node: the node may come back.
	missingNodeGrace = 40 * time.Second
)

// podGarbage removes pods that nothing else removes: those on nodes that are
// gone, those deleted before they got a node or on a node out of service, and
// finished ones beyond the number to keep.
type podGarbage struct {
	nodes     *informer.Informer[bool] // whether they are out of service
	nodeStore registry.Resource
	pods      *informer.Informer[informer.Pod]
	store     registry.Resource
	clock     clock.Clock
	logger    *zap.Logger
	most      int // pods that have ended are kept; no limit if it is 0 or less
	// missing is since when each node has been missing.
	missing map[string]time.Time
}

func newPodGarbage(d *Dependencies) (Loop, error) {
	g := &podGarbage{pods: d.Pods, most: d.MaxTerminatedPods, clock: d.Clock, logger: d.Logger, missing: map[string]time.Time{}}
	var err error
	if g.nodes, g.nodeStore, err = newInformer(d, core.Nodes, isOutOfService); err != nil {
		return nil, err
	}
	if g.store, err = d.Store(core.Pods); err != nil {
		return nil, err
	}
	return runTogether(g.nodes.Run, afterSync(g.run, g.nodes.Synced(), d.Pods.Synced())), nil
}

func (g *podGarbage) run(ctx context.Context) error {
	for {
		if err := g.collectPods(ctx); err != nil && ctx.Err() == nil {
			g.logger.Warn("pod garbage was not all collected", zap.Error(err))
		}
		if err := backoff.Sleep(ctx, g.clock, podGarbageInterval); err != nil {
			return err
		}
	}
}

func (g *podGarbage) collectPods(ctx context.Context) error {
	pods := g.pods.List()
	gone := g.goneNodes(ctx, pods)
	var errs []error
	var ended []informer.Pod
	for _, pod := range pods {
		switch {
		case pod.Node != "" && gone[pod.Node]:
			errs = append(errs, g.remove(ctx, pod, "its node is gone", "PodGC: node no longer exists"))
		case pod.Deleted && g.isOutOfService(pod.Node):
			errs = append(errs, g.remove(ctx, pod, "it was deleted, and its node is out of service", ""))
		case pod.Deleted && pod.Node == "":
			errs = append(errs, g.remove(ctx, pod, "it was deleted before it had a node", ""))
		case pod.HasTerminated() && !pod.Deleted:
			ended = append(ended, pod)
		}
	}
	if extra := len(ended) - g.most; g.most > 0 && extra > 0 {
		slices.SortFunc(ended, compareKept)
		for _, pod := range ended[:extra] {
			errs = append(errs, g.remove(ctx, pod, "too many pods that have ended are kept", ""))
		}
	}
	return errors.Join(errs...)
}

// compareKept orders pods that have ended by which is to go first. Evicted ones are many, and tell
// less than those that a controller, such as a Job's, may not have counted yet.
func compareKept(a, b informer.Pod) int {
	if a.Evicted != b.Evicted {
		if a.Evicted {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

// goneNodes finds pods' nodes that have been missing for long enough; it
// confirms that with the store.
func (g *podGarbage) goneNodes(ctx context.Context, pods []informer.Pod) map[string]bool {
	now := g.clock.Now()
	absent := map[string]bool{}
	for _, pod := range pods {
		if _, ok := g.nodes.Get("", pod.Node); pod.Node != "" && !ok {
			absent[pod.Node] = true
		}
	}
	for node := range g.missing {
		if !absent[node] {
			delete(g.missing, node)
		}
	}
	gone := map[string]bool{}
	for node := range absent {
		since, ok := g.missing[node]
		if !ok {
			g.missing[node] = now
			continue
		}
		if now.Sub(since) < missingNodeGrace {
			continue
		}
		if _, err := g.nodeStore.Get(ctx, "", node, ""); apierrors.IsNotFound(err) {
			gone[node] = true
		}
	}
	return gone
}

// isOutOfService reports whether a node can't end its pods, as a user has declared (Kubernetes
// docs, "Non-graceful node shutdown").
func (g *podGarbage) isOutOfService(node string) bool {
	outOfService, _ := g.nodes.Get("", node)
	return outOfService
}

func isOutOfService(obj core.Object) bool {
	node := obj.(*core.Node)
	return !core.NodeReady(node) &&
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// remove deletes a pod at once; there is no kubelet to end it gracefully, or to say that it
// has ended. Those that count pods, or keep one by a finalizer, read that in its status.
func (g *podGarbage) remove(ctx context.Context, pod informer.Pod, because, disruption string) error {
	g.logger.Info("removing a pod",
		daemon.PodKey(pod.Namespace, pod.Name, pod.UID), zap.String("reason", because))
	now, atOnce := metav1.NewTime(g.clock.Now()), int64(0)
	return deletePod(ctx, g.store, pod, func(p *core.Pod) {
		if core.Ended(p.Status.Phase) {
			return
		}
		p.Status.Phase, p.Status.ObservedGeneration = corev1.PodFailed, p.Generation
		if disruption != "" {
			setDisruptionTarget(p, "DeletionByPodGC", disruption, now)
		}
	}, &atOnce)
}
