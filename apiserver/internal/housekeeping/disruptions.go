package housekeeping

import (
	"context"
	"errors"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"go.uber.org/zap"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

const (
	// podChangeDelay is how long to wait after a pod has changed, because more changes
	// are likely to follow.
	podChangeDelay = 50 * time.Millisecond
	// disruptedPodTimeout is how long an evicted pod counts as gone although its deletion
	// has not begun; upstream's.
	disruptedPodTimeout = 2 * time.Minute
	// resyncPeriod is how often budgets are computed again without any change of
	// pods: their owners' replicas may have changed.
	resyncPeriod = 5 * time.Minute
)

// disruptions computes how many pods of each disruption budget may go
// (Kubernetes docs, "Specifying a Disruption Budget for your Application").
// Pods are watched only while there is a budget. Of those that it selects, the little is kept
// that it needs, since between two passes few of them have changed.
type disruptions struct {
	*Dependencies
	budgets   *informer.Informer[*policyv1.PodDisruptionBudget]
	store     registry.Resource
	pods      registry.Resource
	worker    *worker
	retrigger chan struct{} // this may be the first budget, or the last one gone
	clock     clock.Clock

	mu sync.Mutex
	// known are the pods of each budget, by their revisions: each write has one of its own.
	known map[informer.Key]map[int64]budgetPod
}

// budgetPod is what a budget needs of a pod.
type budgetPod struct {
	name           string
	ready, deleted bool
	controller     *metav1.OwnerReference
}

func budgetPodOf(pod *core.Pod) budgetPod {
	p := budgetPod{name: pod.Name, ready: core.PodReady(pod), deleted: pod.DeletionTimestamp != nil}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		p.controller = owner.DeepCopy() // the pod itself need not stay in memory
	}
	return p
}

func newDisruptions(d *Dependencies) (Loop, error) {
	l := &disruptions{Dependencies: d, retrigger: make(chan struct{}, 1), clock: d.Clock, known: map[informer.Key]map[int64]budgetPod{}}
	options := informer.Options[*policyv1.PodDisruptionBudget]{Index: func(b *policyv1.PodDisruptionBudget) string { return b.Namespace }}
	var err error
	if l.budgets, l.store, err = newInformerWith(d, core.PodDisruptionBudgets, whole[*policyv1.PodDisruptionBudget], options); err != nil {
		return nil, err
	}
	if l.pods, err = d.Store(core.Pods); err != nil {
		return nil, err
	}
	l.worker = newWorker("disruption-controller", d, several, l.sync)
	l.budgets.OnChange(func(key informer.Key, _, _ **policyv1.PodDisruptionBudget) {
		l.worker.add(key)
		select {
		case l.retrigger <- struct{}{}:
		default:
		}
	})
	return runTogether(l.budgets.Run, afterSync(l.worker.run, l.budgets.Synced()), afterSync(l.follow, l.budgets.Synced())), nil
}

// follow watches pods while there are budgets.
func (l *disruptions) follow(ctx context.Context) error {
	for failures := 0; ; {
		if len(l.budgets.List()) == 0 {
			failures = 0
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-l.retrigger:
			}
			continue
		}
		err := l.watch(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			failures = 0
		} else {
			failures++
			l.Logger.Debug("following the pods of disruption budgets, again", zap.Error(err))
			if err := backoff.Sleep(ctx, l.clock, retryPolicy.Delay(failures)); err != nil {
				return err
			}
		}
		l.countAnew()
	}
}

// watch follows pods until the watch breaks or there are no budgets.
func (l *disruptions) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now, err := l.pods.List(ctx, "", registry.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	watcher, err := l.pods.Watch(ctx, "", registry.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		return err
	}
	events := cache.Channel(ctx, watcher.Events())
	for {
		select {
		case <-l.retrigger:
			if len(l.budgets.List()) == 0 {
				return nil
			}
		case event, ok := <-events:
			if !ok {
				return nil
			}
			if err := l.seen(event); err != nil {
				return err
			}
		}
	}
}

// countAnew lets all budgets be counted from nothing, after a watch has ended: changes since were not
// seen, and if etcd has gone back to a backup, revisions are given out a second time.
func (l *disruptions) countAnew() {
	l.mu.Lock()
	l.known = map[informer.Key]map[int64]budgetPod{}
	l.mu.Unlock()
	l.budgets.Each(func(key informer.Key, _ *policyv1.PodDisruptionBudget) { l.worker.add(key) })
}

// seen lets the budgets be counted again that a pod's event may change.
func (l *disruptions) seen(event cache.WatchEvent) (err error) {
	switch event.Type {
	case "ERROR":
		return errors.New("the watch of pods failed")
	case "BOOKMARK":
		return nil
	}
	obj := event.Object.Object
	if obj == nil {
		if obj, err = l.pods.Decode(event.Object); err != nil {
			return err
		}
	}
	// All budgets of the namespace: the pod may have belonged to another before.
	for _, b := range l.budgets.ByIndex(obj.GetNamespace()) {
		l.worker.addAfter(informer.Key{Namespace: b.Namespace, Name: b.Name}, podChangeDelay)
	}
	return nil
}

func (l *disruptions) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	if _, ok := l.budgets.Get(key.Namespace, key.Name); !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.known, key)
		return 0, nil
	}
	again := resyncPeriod
	err := modify(ctx, l.store, registry.Target{Namespace: key.Namespace, Name: key.Name, Subresource: "status"},
		func(current core.Object) (core.Object, error) {
			b := current.(*policyv1.PodDisruptionBudget)
			pods, err := l.podsOf(ctx, b)
			if err != nil {
				return nil, err
			}
			again = l.updateBudget(ctx, b, pods)
			return b, nil
		})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return again, err
}

// podsOf are the pods that a budget selects, as they are stored now. Only those that have changed
// are decoded.
func (l *disruptions) podsOf(ctx context.Context, b *policyv1.PodDisruptionBudget) ([]budgetPod, error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil, nil // one that can't be read selects nothing
	}
	key := informer.Key{Namespace: b.Namespace, Name: b.Name}
	l.mu.Lock()
	known := l.known
	before := known[key]
	l.mu.Unlock()
	list, err := l.pods.List(ctx, b.Namespace, registry.ListOptions{Labels: selector})
	if err != nil {
		return nil, err
	}
	now, pods := make(map[int64]budgetPod, len(list.Items)), make([]budgetPod, 0, len(list.Items))
	for _, item := range list.Items {
		pod, ok := before[item.Revision]
		if !ok {
			obj, err := l.pods.Decode(item)
			if err != nil {
				return nil, err
			}
			pod = budgetPodOf(obj.(*core.Pod))
		}
		now[item.Revision] = pod
		pods = append(pods, pod)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known[key] = now // of no use if countAnew was called since the list
	return pods, nil
}

// updateBudget updates b's status, and returns when to look again.
func (l *disruptions) updateBudget(ctx context.Context, b *policyv1.PodDisruptionBudget, pods []budgetPod) time.Duration {
	now, again := l.clock.Now(), resyncPeriod
	evicted := map[string]metav1.Time{}
	healthy := int32(0)
	for _, pod := range pods {
		if pod.deleted {
			continue
		}
		if at, ok := b.Status.DisruptedPods[pod.name]; ok {
			if left := at.Add(disruptedPodTimeout).Sub(now); left > 0 {
				evicted[pod.name], again = at, min(again, left)
				continue
			}
		}
		if pod.ready {
			healthy++
		}
	}
	expected, desired, err := l.expectedAndDesired(ctx, b, pods)
	if err != nil {
		setFailed(&b.Status, err, now)
		return again
	}
	s := &b.Status
	s.DisruptedPods = evicted
	if len(evicted) == 0 {
		s.DisruptedPods = nil
	}
	condition := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods, s.DisruptionsAllowed = healthy, desired, expected, 0
	if healthy > desired && expected > 0 {
		s.DisruptionsAllowed = healthy - desired
		condition.Status, condition.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	s.ObservedGeneration = b.Generation
	meta.SetStatusCondition(&s.Conditions, condition)
	return again
}

// setFailed allows no eviction while nobody can tell how many pods are expected. What
// kube-controller-manager, which may run beside us, has said about that is left as it is: each would
// replace the other's words.
func setFailed(s *policyv1.PodDisruptionBudgetStatus, cause error, now time.Time) {
	s.DisruptionsAllowed = 0
	if known := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition); known != nil &&
		known.Reason == policyv1.SyncFailedReason {
		return
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: cause.Error(),
		ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	})
}

// expectedAndDesired returns how many pods are expected, and how many of them have to be healthy.
func (l *disruptions) expectedAndDesired(ctx context.Context, b *policyv1.PodDisruptionBudget,
	pods []budgetPod) (expected, desired int32, err error) {
	least, most := b.Spec.MinAvailable, b.Spec.MaxUnavailable
	switch {
	case most == nil && least == nil:
		return 0, 0, nil
	case most == nil && least.Type == intstr.Int:
		return int32(len(pods)), least.IntVal, nil
	}
	if expected, err = l.expectedScale(ctx, b.Namespace, pods); err != nil {
		return 0, 0, err
	}
	amount := most
	if amount == nil {
		amount = least
	}
	scaled, err := intstr.GetScaledValueFromIntOrPercent(amount, int(expected), true)
	if err != nil {
		return 0, 0, err
	}
	if most != nil {
		return expected, max(0, expected-int32(scaled)), nil
	}
	return expected, int32(scaled), nil
}
