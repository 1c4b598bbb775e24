// Package mirror shows a node's static pods in the API, each by its mirror pod
// (Kubernetes docs, "Create static Pods").
//
// The pod workers have a mirror made when a static pod is synced, and deleted when it
// has ended for good; housekeeping does both for what was missed. No pod waits for any
// of that: static pods must run without an API server too.
package mirror

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/status"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/rest"
)

// timeout is for one call to the API server.
const timeout = 10 * time.Second

// Events receives messages for people about a pod.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
}

// Manager makes and deletes mirror pods. It is safe for concurrent use.
type Manager struct {
	ctx    context.Context // of all calls
	client *rest.Client    // nil without an API server
	pods   *podmanager.Manager
	node   func() *core.Node
	events Events
	logger *zap.Logger

	calls sync.WaitGroup // under way
	retry *backoff.Keyed[types.UID]

	mu       sync.Mutex
	creating map[types.UID]bool
}

// pauses are those between attempts to make the mirror of a pod; housekeeping runs
// every two seconds.
var pauses = backoff.Policy{Initial: time.Second, Max: time.Minute, Jitter: 0.5}

// New returns a Manager whose calls end with ctx. client is nil without an API server.
func New(ctx context.Context, client *rest.Client, pods *podmanager.Manager, node func() *core.Node, events Events,
	clock clock.PassiveClock, logger *zap.Logger) *Manager {
	return &Manager{
		ctx: ctx, client: client, pods: pods, node: node, events: events, logger: logger,
		retry: backoff.NewKeyed[types.UID](pauses, clock), creating: map[types.UID]bool{},
	}
}

// Wait waits for the calls that are under way.
func (m *Manager) Wait() { m.calls.Wait() }

// Of is the mirror of a pod; nil where it has none.
func (m *Manager) Of(pod *core.Pod) *core.Pod {
	if podmanager.IsStatic(pod) {
		return m.pods.Mirror(pod)
	}
	return nil
}

// EnsureMirror makes sure that the API shows a static pod that is to run as it is now. A
// mirror that has ended shows an earlier one, whose manifest came back.
func (m *Manager) EnsureMirror(pod *core.Pod) {
	if m.client == nil || !podmanager.IsStatic(pod) || status.Ending(pod) || m.node().UID == "" {
		return // its mirror belongs to the node: housekeeping makes it when there is one
	}
	mirror := m.pods.Mirror(pod)
	if mirror != nil && !status.Ending(mirror) && podmanager.IsMirrorOf(mirror, pod) {
		return
	}
	if !m.begin(pod.UID) {
		return
	}
	m.calls.Go(func() {
		if mirror != nil {
			m.Delete(mirror)
		}
		m.end(pod.UID, m.create(pod))
	})
}

// begin tells whether the mirror of a pod may be made now: it is not being made, and
// making it has not failed a moment ago.
func (m *Manager) begin(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.creating[uid] || m.retry.Remaining(uid) > 0 {
		return false
	}
	m.creating[uid] = true
	return true
}

func (m *Manager) end(uid types.UID, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.creating, uid)
	if made {
		m.retry.Reset(uid)
	} else {
		m.retry.Fail(uid)
	}
}

// Retire deletes the mirror of a static pod that was removed and has ended. If its
// manifest is back by now, that is another pod with a mirror of its own, whether
// or not the API was told in time how this one ended.
func (m *Manager) Retire(pod *core.Pod) {
	mirror := m.Of(pod)
	if m.client == nil || mirror == nil {
		return
	}
	m.calls.Go(func() { m.Delete(mirror) })
}

func (m *Manager) create(pod *core.Pod) (made bool) {
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	defer cancel()
	mirror := pod.DeepCopy()
	mirror.UID, mirror.ResourceVersion, mirror.Status = "", "", core.PodStatus{}
	mirror.Annotations = maps.Clone(pod.Annotations)
	mirror.Annotations[core.ConfigMirrorAnnotation] = pod.Annotations[core.ConfigHashAnnotation]
	node := m.node()
	mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}}
	err := m.client.Resource(core.Pods, pod.Namespace).Create(ctx, mirror, nil)
	if apierrors.IsAlreadyExists(err) {
		if there := m.earlier(ctx, pod); there != nil {
			return podmanager.IsMirrorOf(there, pod) && !status.Ending(there) // of any other the watch has yet to tell
		}
		m.events.Eventf(pod, corev1.EventTypeWarning, "FailedMirrorPod",
			"The API does not show this static pod: another pod has its name. Delete that, or rename this one.")
	}
	if err != nil {
		m.logger.Warn("mirror pod not created", daemon.PodFields(pod), zap.Error(err))
	}
	return err == nil
}

// earlier is the mirror that we made for a static pod of that name; nil if another has the name. A pod that we
// may not read is none of ours.
func (m *Manager) earlier(ctx context.Context, pod *core.Pod) *core.Pod {
	there := &core.Pod{}
	err := m.client.Resource(core.Pods, pod.Namespace).Get(ctx, pod.Name, there)
	if err != nil || there.Annotations[core.ConfigMirrorAnnotation] == "" || there.Spec.NodeName != m.node().Name {
		return nil
	}
	return there
}

// Delete deletes a mirror, and returns when that is done or has failed.
func (m *Manager) Delete(mirror *core.Pod) {
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	defer cancel()
	err := m.client.Resource(core.Pods, mirror.Namespace).Delete(ctx, mirror.Name, &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &mirror.UID},
	}, nil)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		m.logger.Warn("mirror pod not deleted", daemon.PodFields(mirror), zap.Error(err))
	}
}
