package kubelet

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/rest"
)

const mirrorTimeout = 10 * time.Second

// mirrors shows the node's static pods in the API, each by its mirror pod. No pod
// waits for that: static pods must run without an API server too.
type mirrors struct {
	client *rest.Client // nil without an API server
	pods   *podmanager.Manager
	node   func() *core.Node
	logger *zap.Logger

	calls sync.WaitGroup // under way
	retry *backoff.Keyed[types.UID]

	mu     sync.Mutex
	making map[types.UID]bool
}

// mirrorBackoff is the pause between attempts to make the mirror of a pod;
// housekeeping runs every two seconds.
var mirrorBackoff = backoff.Policy{Initial: time.Second, Max: time.Minute, Jitter: 0.5}

func newMirrors(client *rest.Client, pods *podmanager.Manager, node func() *core.Node, clock clock.PassiveClock, logger *zap.Logger) *mirrors {
	return &mirrors{client: client, pods: pods, node: node, logger: logger, retry: backoff.NewKeyed[types.UID](mirrorBackoff, clock), making: map[types.UID]bool{}}
}

// of is the mirror of a pod; nil where it has none.
func (m *mirrors) of(pod *core.Pod) *core.Pod {
	if podmanager.IsStatic(pod) {
		return m.pods.Mirror(pod)
	}
	return nil
}

// ensure makes sure that the API shows a static pod that is to run as it is now. A
// mirror that has ended shows an earlier one, whose manifest came back.
func (m *mirrors) ensure(pod *core.Pod) {
	if m.client == nil || !podmanager.IsStatic(pod) || ending(pod) || m.node().UID == "" {
		return // its mirror belongs to the node: housekeeping makes it when there is one
	}
	mirror := m.pods.Mirror(pod)
	if mirror != nil && !ending(mirror) && podmanager.IsMirrorOf(mirror, pod) {
		return
	}
	if !m.begin(pod.UID) {
		return
	}
	m.calls.Go(func() {
		if mirror != nil {
			m.delete(mirror)
		}
		m.end(pod.UID, m.create(pod))
	})
}

// begin tells whether the mirror of a pod may be made now: it is not being made, and
// making it has not failed a moment ago.
func (m *mirrors) begin(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.making[uid] || m.retry.Remaining(uid) > 0 {
		return false
	}
	m.making[uid] = true
	return true
}

func (m *mirrors) end(uid types.UID, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.making, uid)
	if made {
		m.retry.Reset(uid)
	} else {
		m.retry.Fail(uid)
	}
}

// drop deletes the mirror of a static pod that was removed and has ended. If its
// manifest is back by now, that is another pod with a mirror of its own, whether
// or not the API was told in time how this one ended.
func (m *mirrors) drop(pod *core.Pod) {
	mirror := m.of(pod)
	if m.client == nil || mirror == nil {
		return
	}
	m.calls.Go(func() { m.delete(mirror) })
}

func (m *mirrors) create(pod *core.Pod) (made bool) {
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTimeout)
	defer cancel()
	mirror := pod.DeepCopy()
	mirror.UID, mirror.ResourceVersion, mirror.Status = "", "", core.PodStatus{}
	mirror.Annotations = maps.Clone(pod.Annotations)
	mirror.Annotations[core.ConfigMirrorAnnotation] = pod.Annotations[core.ConfigHashAnnotation]
	node := m.node()
	mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true)}}
	err := m.client.Resource(core.Pods, pod.Namespace).Create(ctx, mirror, nil)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		m.logger.Warn("mirror pod not created", daemon.PodFields(pod), zap.Error(err))
		return false
	}
	return true
}

func (m *mirrors) delete(mirror *core.Pod) {
	ctx, cancel := context.WithTimeout(context.Background(), mirrorTimeout)
	defer cancel()
	err := m.client.Resource(core.Pods, mirror.Namespace).Delete(ctx, mirror.Name, &metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &mirror.UID},
	}, nil)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		m.logger.Warn("mirror pod not deleted", daemon.PodFields(mirror), zap.Error(err))
	}
}
