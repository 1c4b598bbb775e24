package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/events"
	"kctl/scheduler/framework"
)

// maxPatches bounds the conditions that wait to be sent; after one is dropped,
// the pod's next attempt writes it.
const maxPatches = 100_000

// messageGated is what upstream's API server sets when a pod
// with gates is created.
const messageGated = "Scheduling is blocked due to non-empty scheduling gates"

// Actions maps the reason of an event to upstream's word for what the scheduler
// did to the pod.
var Actions = map[string]string{"Scheduled": "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}

// API is what the reporter asks of the API server.
type API interface {
	Pod(ctx context.Context, namespace, name string) (*core.Pod, error)
	PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) error
}

// Sink also takes events that may wait: there is a "Scheduled" event for every
// pod, and each costs the API server as much as the next pod's binding.
type Sink interface {
	events.Sink
	Laterf(obj runtime.Object, eventType, reason, format string, args ...any)
}

// Reporter is safe for concurrent use.
type Reporter struct {
	events Sink
	api    API
	clock  clock.PassiveClock
	logger *zap.Logger

	mu      sync.Mutex
	waiting map[types.UID]patch
	order   []types.UID
	wake    chan struct{}
}

type patch struct {
	namespace, name string
	uid             types.UID
	revision        string             // of the pod that the condition is about
	condition       *core.PodCondition // nil where that does not change
	nominated       *string            // and so here
}

// New returns a reporter; Run sends its patches.
func New(sink Sink, api API, clock clock.PassiveClock, logger *zap.Logger) *Reporter {
	return &Reporter{
		events: sink, api: api, clock: clock, logger: logger,
		waiting: map[types.UID]patch{}, wake: make(chan struct{}, 1),
	}
}

// Scheduled reports that the pod is bound.
func (r *Reporter) Scheduled(pod *core.Pod, node string) {
	r.forget(pod.UID)
	r.events.Laterf(pod, corev1.EventTypeNormal, "Scheduled",
		"Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node)
}

// Nominated reports that the pod has room on a node and is bound later: others
// that look for room, such as an autoscaler, see where it will be (KEP-5278).
func (r *Reporter) Nominated(pod *core.Pod, node string) {
	if pod.Status.NominatedNodeName != node {
		r.enqueue(patch{namespace: pod.Namespace, name: pod.Name, uid: pod.UID, revision: pod.ResourceVersion, nominated: &node})
	}
}

// Unscheduled reports that an attempt found no node, or failed, and on which
// node others make room for the pod, if any.
func (r *Reporter) Unscheduled(pod *core.Pod, err error, nominated string) {
	r.events.Eventf(pod, corev1.EventTypeWarning, "FailedScheduling", "%s", err.Error())
	reason := corev1.PodReasonSchedulerError
	var fit *framework.FitError
	if errors.As(err, &fit) || errors.Is(err, framework.ErrNoNodes) {
		reason = corev1.PodReasonUnschedulable
	}
	r.condition(pod, reason, err.Error(), nominated)
}

// Gated reports that the pod is kept out of the queue by its own gates. The API server
// has usually said so already. Other PreEnqueue plugins' reasons go unreported, as
// upstream's.
func (r *Reporter) Gated(pod *core.Pod, _ *framework.Status) {
	if len(pod.Spec.SchedulingGates) == 0 {
		return
	}
	r.condition(pod, corev1.PodReasonSchedulingGated, messageGated, pod.Status.NominatedNodeName)
}

// condition queues PodScheduled=False to be sent, unless the pod already has the same.
func (r *Reporter) condition(pod *core.Pod, reason, message, nominated string) {
	p := patch{namespace: pod.Namespace, name: pod.Name, uid: pod.UID, revision: pod.ResourceVersion}
	if nominated != pod.Status.NominatedNodeName {
		p.nominated = &nominated
	}
	condition := core.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(r.clock.Now()), ObservedGeneration: pod.Generation,
	}
	for _, old := range pod.Status.Conditions {
		if old.Type != corev1.PodScheduled {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		if old.Status == condition.Status && old.Reason == reason && old.Message == message && p.nominated == nil {
			r.forget(pod.UID)
			return
		}
	}
	p.condition = &condition
	r.enqueue(p)
}

func (r *Reporter) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, uid) // its place in order is skipped
}

func (r *Reporter) enqueue(p patch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waits := r.waiting[p.uid]; !waits {
		if len(r.order) >= maxPatches {
			r.logger.Warn("too many pod conditions wait, one is dropped", daemon.PodKey(p.namespace, p.name, p.uid))
			return
		}
		r.order = append(r.order, p.uid)
	}
	r.waiting[p.uid] = p
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Reporter) next() (patch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 {
		uid := r.order[0]
		r.order = r.order[1:]
		if p, waits := r.waiting[uid]; waits {
			delete(r.waiting, uid)
			return p, true
		}
	}
	r.order = nil
	return patch{}, false
}

// Run sends patches until ctx ends, and returns ctx's error.
func (r *Reporter) Run(ctx context.Context) error {
	for {
		for ctx.Err() == nil {
			p, more := r.next()
			if !more {
				break
			}
			r.send(ctx, p)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		}
	}
}

// maxConflicts bounds the tries to write a condition while others write.
const maxConflicts = 5

// send writes the condition to the version of the pod that it is about, or to a
// newer one that still has no node: a late condition must not say that a bound
// pod isn't.
func (r *Reporter) send(ctx context.Context, p patch) {
	var err error
	for range maxConflicts {
		var body []byte
		if body, err = p.encode(); err == nil {
			err = r.api.PatchPodStatus(ctx, p.namespace, p.name, body)
		}
		if !apierrors.IsConflict(err) {
			break
		}
		stored, readErr := r.api.Pod(ctx, p.namespace, p.name)
		if readErr != nil {
			err = readErr
			break
		}
		if stored.UID != p.uid || stored.Spec.NodeName != "" {
			return
		}
		p.revision = stored.ResourceVersion
	}
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
		return
	}
	r.logger.Warn("status of pod could not be written", daemon.PodKey(p.namespace, p.name, p.uid), zap.Error(err))
}

// encode writes a strategic merge patch that applies to one version of one pod only.
func (p patch) encode() ([]byte, error) {
	status := map[string]any{}
	if p.condition != nil {
		status["conditions"] = []core.PodCondition{*p.condition}
	}
	switch {
	case p.nominated == nil:
	case *p.nominated == "":
		status["nominatedNodeName"] = nil // removed
	default:
		status["nominatedNodeName"] = *p.nominated
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.uid, "resourceVersion": p.revision},
		"status":   status,
	})
	if err != nil {
		return nil, fmt.Errorf("encode condition: %w", err)
	}
	return body, nil
}
