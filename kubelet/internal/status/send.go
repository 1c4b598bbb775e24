package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
	"kctl/proto/rest"
)

// API is where statuses go.
type API interface {
	// PatchStatus applies a strategic merge patch to the pod's status, and returns
	// the resulting pod.
	PatchStatus(ctx context.Context, pod types.NamespacedName, patch []byte, report relay.Report) (*core.Pod, error)
	// Delete removes the object at once, if it still has that UID.
	Delete(ctx context.Context, pod types.NamespacedName, uid types.UID) error
}

// RESTAPI is the API behind a rest.Client.
type RESTAPI struct{ Client *rest.Client }

// PatchStatus implements API.
func (a RESTAPI) PatchStatus(ctx context.Context, pod types.NamespacedName, patch []byte, report relay.Report) (*core.Pod, error) {
	options := []rest.Option{rest.Sub("status")}
	if len(report.Stamps) > 0 {
		options = append(options, rest.Header(relay.Header, relay.Encode(report.Stamps)))
	}
	if len(report.Restarts) > 0 {
		options = append(options, rest.Header(relay.RestartHeader, relay.EncodeRestarts(report.Restarts)))
	}
	var patched core.Pod
	err := a.Client.Resource(core.Pods, pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, &patched, options...)
	return &patched, err
}

// Delete implements API.
func (a RESTAPI) Delete(ctx context.Context, pod types.NamespacedName, uid types.UID) error {
	return a.Client.Resource(core.Pods, pod.Namespace).Delete(ctx, pod.Name, &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &uid},
	}, nil)
}

// sendTimeout bounds one request; sendRetry spaces those that failed.
const sendTimeout = 30 * time.Second

var sendRetry = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.2}

// send sends the entry's newest version to the API, retrying until it is there.
// There is one send at a time for an entry.
func (m *Manager) send(ctx context.Context, uid types.UID, e *entry) {
	failures, why := 0, metav1.StatusReasonUnknown
	for {
		work, ok := m.nextWork(ctx, uid, e)
		if !ok {
			return
		}
		err := m.deliver(ctx, e, work)
		if err == nil {
			failures = 0
			continue
		}
		failures++
		if now := apierrors.ReasonForError(err); failures == 1 || now != why {
			why = now
			m.options.Logger.Warn("pod status not sent, will retry", daemon.PodKey(e.name.Namespace, e.name.Name, uid), zap.Error(err))
		}
		m.pause(ctx, e, sendRetry.Delay(failures))
	}
}

// pause waits, but less if there is something new to send.
func (m *Manager) pause(ctx context.Context, e *entry, d time.Duration) {
	select {
	case <-e.kick: // what woke this round
	default:
	}
	timer := m.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-e.kick:
	case <-timer.C():
	}
}

// work is one request to make.
type work struct {
	object  *core.Pod // in the API
	own     bool      // it is the pod itself, not a mirror
	status  core.PodStatus
	version uint64
	patch   bool
	remove  bool
	report  relay.Report
}

// nextWork decides what to do for the entry; if nothing, the entry is no longer
// busy.
func (m *Manager) nextWork(ctx context.Context, uid types.UID, e *entry) (work, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object := m.object(uid, e)
	if object == nil || e.deleted || e.unsettled || ctx.Err() != nil || e.held.After(m.options.Clock.Now()) {
		m.rest(e)
		return work{}, false
	}
	w := work{object: object, own: object.UID == uid, version: e.version}
	if e.sent != e.version {
		w.status = merged(acceptable(e.status, object), &object.Status)
		w.patch = !equality.Semantic.DeepEqual(&w.status, &object.Status)
		if !w.patch {
			e.sent, e.changed = e.version, time.Time{}
		}
	}
	if !w.patch {
		w.remove = e.finished && object.DeletionTimestamp != nil && w.own
	}
	if !w.patch && !w.remove {
		m.rest(e)
		return work{}, false
	}
	e.unsent = append(append(e.unsent, e.stamps.Unsent()...), e.endStamps.Unsent()...)
	w.report = relay.Report{Stamps: e.unsent, Restarts: e.restarts.Unsent()}
	return w, true
}

// object is the pod's object in the API: the newer of what the watch brought
// and what the last patch returned.
func (m *Manager) object(uid types.UID, e *entry) *core.Pod {
	pod, ok := m.options.Pods.ByUID(uid)
	if !ok {
		return nil
	}
	object := m.options.Pods.APIPod(pod)
	if object == nil || e.base == nil || e.base.UID != object.UID || !core.Older(object, e.base) {
		return object
	}
	return e.base
}

func (m *Manager) deliver(ctx context.Context, e *entry, w work) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if w.remove {
		return m.remove(ctx, e, w)
	}
	patch, err := patchOf(w.object, &w.status)
	if err != nil {
		return err
	}
	patched, err := m.options.API.PatchStatus(ctx, nameOf(w.object), patch, w.report)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		// The object is gone: nobody waits for this status. If another object has its
		// name, there is a conflict; but there may also be one if many write to it,
		// so that is tried again until the watch says that the object is gone.
		e.sent = max(e.sent, w.version)
		e.deleted = w.own
		return nil
	case err != nil:
		return fmt.Errorf("patch status of pod %s: %w", e.name, err)
	}
	e.base = patched
	e.sent = max(e.sent, w.version)
	e.unsent = e.unsent[len(w.report.Stamps):]
	e.restarts.Sent(w.report.Restarts)
	m.observeSent(e, w)
	return nil
}

func (m *Manager) remove(ctx context.Context, e *entry, w work) error {
	err := m.options.API.Delete(ctx, nameOf(w.object), w.object.UID)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", e.name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.deleted = true
	m.options.Logger.Info("pod deleted after its end", daemon.PodFields(w.object))
	return nil
}

func nameOf(pod *core.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// merged is the status for the API: ours, with the conditions that others wrote
// since. It never goes back from an ended phase, and has no such phase while a
// container runs: others would take that for the end, and give the pod's room
// away.
func merged(status core.PodStatus, api *core.PodStatus) core.PodStatus {
	early := core.Ended(status.Phase) && !core.Ended(api.Phase) && Runs(&status)
	if early {
		status.Phase, status.Reason, status.Message = api.Phase, api.Reason, api.Message
	}
	var conditions []core.PodCondition
	for _, ours := range status.Conditions {
		theirs := findCondition(api.Conditions, ours.Type)
		switch {
		case theirs != nil && !kubeletConditions[ours.Type]:
			ours = *theirs
		case theirs == nil && early && ours.Type == corev1.DisruptionTarget:
			continue // it is sent when the pod has ended
		}
		conditions = append(conditions, ours)
	}
	for _, theirs := range api.Conditions {
		// Passing conditions are ours, and are over.
		if findCondition(status.Conditions, theirs.Type) == nil && !passing[theirs.Type] {
			conditions = append(conditions, theirs)
		}
	}
	if sameConditions(conditions, api.Conditions) {
		conditions = api.Conditions // nothing is sent only to reorder them
	}
	status.Conditions = conditions
	if core.Ended(api.Phase) {
		status.Phase = api.Phase
	}
	status.QOSClass = cmp.Or(api.QOSClass, status.QOSClass) // never changes
	return status
}

// Runs says that a container of the pod runs.
func Runs(status *core.PodStatus) bool {
	for c := range core.AllContainerStatuses(status) {
		if c.State.Running != nil {
			return true
		}
	}
	return false
}

// Begun says that a kubelet has begun with the pod: it has told of its containers.
func Begun(status *core.PodStatus) bool {
	return len(status.InitContainerStatuses)+len(status.ContainerStatuses)+len(status.EphemeralContainerStatuses) > 0
}

// sameConditions says that two lists have the same, in whatever order.
func sameConditions(a, b []core.PodCondition) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c core.PodCondition) bool {
		other := findCondition(b, c.Type)
		return other == nil || !equality.Semantic.DeepEqual(c, *other)
	})
}

// patchOf is the difference between the object's status and the given one, as a
// strategic merge patch that applies only to that very object.
func patchOf(object *core.Pod, status *core.PodStatus) ([]byte, error) {
	before, err := json.Marshal(core.Pod{Status: object.Status})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	after, err := json.Marshal(core.Pod{ObjectMeta: metav1.ObjectMeta{UID: object.UID}, Status: *status})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare statuses: %w", err)
	}
	return patch, nil
}
