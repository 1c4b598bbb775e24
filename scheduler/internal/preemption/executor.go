package preemption

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/events"
)

const (
	// plugin is the one for which pods are evicted.
	plugin = "DefaultPreemption"
	// maxWaiting bounds the pods that wait to be evicted.
	maxWaiting = 1000
	// workers is how many evictions run at the same time.
	workers = 8
	// attempts bounds how often the eviction of a pod is tried; the next attempt
	// at the preemptor may find other victims.
	attempts = 5
)

var retry = backoff.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second}

// API is what the executor asks of the API server.
type API interface {
	PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) error
	// DeletePod deletes the pod of this UID; another of its name stays.
	DeletePod(ctx context.Context, pod *core.Pod) error
}

// Nominator is notified of pods that could not be evicted.
type Nominator interface{ Left(uid types.UID) }

// WaitingPods takes the room of pods that are not bound yet away.
type WaitingPods interface {
	Preempt(uid types.UID, by string) bool
}

// Options are what an Executor works with.
type Options struct {
	API         API
	Nominator   Nominator
	WaitingPods WaitingPods
	// Events says by whom people are told of evictions for a preemptor.
	Events func(preemptor *core.Pod) events.Sink
	Clock  clock.Clock
	Logger *zap.Logger
}

// Executor is safe for concurrent use.
type Executor struct {
	o       Options
	waiting chan eviction
}

// eviction is the eviction of one pod for another.
type eviction struct{ preemptor, victim *core.Pod }

// New returns an executor; Run evicts.
func New(o Options) *Executor {
	return &Executor{o: o, waiting: make(chan eviction, maxWaiting)}
}

// Evict makes victims leave node for preemptor, and does not wait for them. A
// victim that waits for Permit or PreBind plugins need not end: it is not bound, gives up
// its room, and is tried again.
func (e *Executor) Evict(preemptor *core.Pod, victims []*core.Pod, node string) {
	tell := func(victim *core.Pod, how string) {
		e.o.Events(preemptor).Eventf(victim, corev1.EventTypeNormal, "Preempted", "Preempted by pod %s on node %s%s", preemptor.UID, node, how)
	}
	for _, victim := range victims {
		if e.o.WaitingPods.Preempt(victim.UID, plugin) {
			e.o.Nominator.Left(victim.UID)
			tell(victim, " (in kube-scheduler memory).") // upstream's words
			continue
		}
		select {
		case e.waiting <- eviction{preemptor, victim}:
			tell(victim, "")
		default:
			e.o.Nominator.Left(victim.UID)
			e.o.Logger.Warn("too many pods wait to be evicted, one is left alone",
				daemon.PodFields(victim))
		}
	}
}

// Run evicts pods until ctx ends, and returns ctx's error.
func (e *Executor) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case ev := <-e.waiting:
					e.ask(ctx, ev)
				}
			}
		})
	}
	return group.Wait()
}

// ask tries until the API server has accepted the pod's deletion.
func (e *Executor) ask(ctx context.Context, ev eviction) {
	var err error
	for i := range attempts {
		if err = e.try(ctx, ev); err == nil {
			return // the event handlers see it go
		}
		if backoff.Sleep(ctx, e.o.Clock, retry.Delay(i+1)) != nil {
			break
		}
	}
	e.o.Nominator.Left(ev.victim.UID)
	if ctx.Err() == nil {
		e.o.Logger.Warn("pod could not be evicted",
			daemon.PodFields(ev.victim), zap.Error(err))
	}
}

// try writes why the pod has to leave, and deletes it. A pod that is gone, or
// has another UID by now, has left.
func (e *Executor) try(ctx context.Context, ev eviction) error {
	body, err := e.reason(ev)
	if err == nil {
		err = e.o.API.PatchPodStatus(ctx, ev.victim.Namespace, ev.victim.Name, body)
	}
	if err == nil {
		err = e.o.API.DeletePod(ctx, ev.victim)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		e.o.Nominator.Left(ev.victim.UID)
		return nil
	}
	return err
}

// reason is a strategic merge patch that holds for the victim only.
func (e *Executor) reason(ev eviction) ([]byte, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": ev.victim.UID},
		"status": map[string]any{"conditions": []core.PodCondition{{
			Type:               corev1.DisruptionTarget,
			Status:             corev1.ConditionTrue,
			Reason:             corev1.PodReasonPreemptionByScheduler,
			Message:            ev.preemptor.Spec.SchedulerName + ": preempting to accommodate a higher priority pod",
			LastTransitionTime: metav1.NewTime(e.o.Clock.Now()),
			ObservedGeneration: ev.victim.Generation,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode condition: %w", err)
	}
	return body, nil
}
