package housekeeping

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	pods "kctl/apiserver/internal/resources/pod"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// taintEviction deletes pods from nodes whose NoExecute taints they do not, or no
// longer, tolerate.
type taintEviction struct {
	nodes  *informer.Informer[nodeState]
	pods   *informer.Informer[informer.Pod]
	store  registry.Resource
	clock  clock.Clock
	logger *zap.Logger

	mu sync.Mutex
	// seen is since when a node has each of its NoExecute taints: users' taints
	// have no time.
	seen map[string]map[taintKey]time.Time
}

// taintKey identifies a node's taints, which all have the same effect here.
type taintKey struct{ key, value string }

func newTaintEviction(d *Dependencies) (Loop, error) {
	e := &taintEviction{pods: d.Pods, clock: d.Clock, logger: d.Logger, seen: map[string]map[taintKey]time.Time{}}
	var err error
	if e.nodes, _, err = newInformer(d, core.Nodes, nodeStateOf); err != nil {
		return nil, err
	}
	if e.store, err = d.Store(core.Pods); err != nil {
		return nil, err
	}
	w := newWorker("taint-eviction-controller", d, several, e.sync)
	e.nodes.OnChange(func(key informer.Key, old, now *nodeState) {
		e.recordTaints(key.Name, now)
		if now == nil || len(noExecute(now.taints)) == 0 && (old == nil || len(noExecute(old.taints)) == 0) {
			return
		}
		for _, pod := range e.pods.ByIndex(key.Name) {
			w.add(informer.Key{Namespace: pod.Namespace, Name: pod.Name})
		}
	})
	d.Pods.OnChange(func(key informer.Key, old, now *informer.Pod) {
		if now != nil && now.Node != "" && !now.Deleted && (old == nil || old.Node == "" || !sameTolerations(old.Tolerations, now.Tolerations)) {
			w.add(key)
		}
	})
	return runTogether(e.nodes.Run, afterSync(w.run, e.nodes.Synced(), d.Pods.Synced())), nil
}

// sameTolerations reports whether they tolerate the same for the same time: a user may add some, and
// change for how long.
func sameTolerations(a, b []corev1.Toleration) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Toleration) bool {
		return a.MatchToleration(&b) && ptr.Equal(a.TolerationSeconds, b.TolerationSeconds)
	})
}

// recordTaints records since when a node has its taints; now is nil when it is gone.
func (e *taintEviction) recordTaints(node string, now *nodeState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.seen[node]
	delete(e.seen, node)
	if now == nil {
		return
	}
	bears := map[taintKey]time.Time{}
	for _, taint := range noExecute(now.taints) {
		key := taintKey{taint.Key, taint.Value}
		since, known := before[key]
		if !known {
			since = e.clock.Now()
		}
		bears[key] = since
	}
	if len(bears) > 0 {
		e.seen[node] = bears
	}
}

// taints are the node's NoExecute taints, each with the time at which it was
// added.
func (e *taintEviction) taints(node nodeState) []corev1.Taint {
	e.mu.Lock()
	defer e.mu.Unlock()
	taints := noExecute(node.taints)
	for i := range taints {
		since, known := e.seen[node.name][taintKey{taints[i].Key, taints[i].Value}]
		if taints[i].TimeAdded == nil && known {
			taints[i].TimeAdded = &metav1.Time{Time: since}
		}
	}
	return taints
}

func noExecute(taints []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, t)
		}
	}
	return out
}

func (e *taintEviction) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	pod, ok := e.pods.Get(key.Namespace, key.Name)
	if !ok || pod.Deleted || pod.Node == "" || pod.Mirror {
		return 0, nil
	}
	node, ok := e.nodes.Get("", pod.Node)
	if !ok {
		return 0, nil
	}
	left, stays := tolerated(e.taints(node), pod, e.clock.Now())
	if stays || left > 0 {
		return left, nil
	}
	return 0, e.evict(ctx, pod)
}

// tolerated returns how long a pod may stay on a node with these taints; stays
// means indefinitely. The time counts from when both the taint and the pod were there.
func tolerated(taints []corev1.Taint, pod informer.Pod, now time.Time) (left time.Duration, stays bool) {
	stays = true
	for _, taint := range taints {
		since := now
		if taint.TimeAdded != nil {
			since = taint.TimeAdded.Time
		}
		if pod.Bound.After(since) && !pod.Bound.After(now) { // a kubelet whose clock is ahead may have written it
			since = pod.Bound
		}
		until, forever, ok := tolerates(taint, pod.Tolerations, since)
		if !ok {
			return 0, false
		}
		if forever {
			continue
		}
		if d := until.Sub(now); stays || d < left {
			left, stays = d, false
		}
	}
	return left, stays
}

// tolerates returns until when a taint that has counted since then is tolerated. As
// upstream, the first toleration that matches decides.
func tolerates(taint corev1.Taint, tolerations []corev1.Toleration, since time.Time) (until time.Time, forever, ok bool) {
	for i := range tolerations {
		t := &tolerations[i]
		switch {
		case !toleratesTaint(t, taint):
			continue
		case t.TolerationSeconds == nil:
			return time.Time{}, true, true
		}
		return since.Add(core.Seconds(max(0, *t.TolerationSeconds))), false, true
	}
	return time.Time{}, false, false
}

func toleratesTaint(t *corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}

func (e *taintEviction) evict(ctx context.Context, pod informer.Pod) error {
	e.logger.Info("evicting a pod whose node has a taint that it does not tolerate",
		daemon.PodKey(pod.Namespace, pod.Name, pod.UID), zap.String("node", pod.Node))
	now := metav1.NewTime(e.clock.Now())
	return deletePod(ctx, e.store, pod, func(p *core.Pod) {
		setDisruptionTarget(p, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now)
	}, nil)
}

// setDisruptionTarget records in a pod's status why it has to go.
func setDisruptionTarget(p *core.Pod, reason, message string, now metav1.Time) {
	pods.SetCondition(&p.Status, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: p.Generation,
	}, now)
}

// deletePod changes the pod's status, and deletes this pod and no other of its
// name.
func deletePod(ctx context.Context, store registry.Resource, pod informer.Pod, change func(p *core.Pod), grace *int64) error {
	err := modify(ctx, store, registry.Target{Namespace: pod.Namespace, Name: pod.Name, Subresource: "status"},
		func(current core.Object) (core.Object, error) {
			if p := current.(*core.Pod); p.UID == pod.UID {
				change(p)
			}
			return current, nil
		})
	if err := ignoreNotFound(err, "say why the pod has to go"); err != nil {
		return err
	}
	_, _, err = store.Delete(ctx, pod.Namespace, pod.Name, registry.Admission{}, &metav1.DeleteOptions{
		GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	return ignoreNotFound(err, "delete the pod")
}
