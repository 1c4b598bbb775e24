package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// Runtime is what the node reports about its container runtime.
type Runtime interface {
	// RuntimeVersion is name://version, as last known.
	RuntimeVersion() string
	// Features are the features of its handlers, as last known.
	Features() RuntimeFeatures
	// NotReady says why pods can't run now; empty if they can.
	NotReady() []string
	Images(ctx context.Context) ([]corev1.ContainerImage, error)
	// UpdatePodCIDRs takes the ranges of the node's pods, separated by commas.
	UpdatePodCIDRs(ctx context.Context, cidrs string) error
}

// RuntimeFeatures are the features that a container runtime reports; older ones
// report none.
type RuntimeFeatures struct {
	Handlers []corev1.NodeRuntimeHandler
	Node     *corev1.NodeFeatures
}

// Events receives messages for people about the node.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
}

// Config is a Manager's parameters.
type Config struct {
	Client   *rest.Client
	Name     string
	Hostname string
	// Addresses finds the node's addresses as they are now; it is asked with each check of the status.
	Addresses func() []string
	Labels    map[string]string
	Taints    []corev1.Taint
	PodCIDR   string
	// CloudProviderExternal says that a cloud's controller completes the node; GivenIP is the
	// configured address, if any, and ProviderID the cloud's name for it.
	CloudProviderExternal bool
	GivenIP               string
	ProviderID            string
	// Register says that we make the Node; otherwise somebody else has to.
	Register bool
	Machine  Machine
	MaxPods  int64
	Reserved corev1.ResourceList
	Port     func() int32
	Version  string
	// DeclaredFeatures are the features of upstream's list that the node declares.
	DeclaredFeatures []string
	Runtime          Runtime
	Events           Events
	// UnderPressure says whether the node is short of memory, disk or process ids.
	UnderPressure func(corev1.NodeConditionType) bool
	// AttachedMounted says whether volumes that an earlier kubelet used may still be mounted. It is asked only if
	// the node names some.
	AttachedMounted func() bool
	// StatusUpdateFrequency is how often the status is checked, StatusReportFrequency how often it is
	// sent even if unchanged.
	StatusUpdateFrequency time.Duration
	StatusReportFrequency time.Duration
	LeaseDuration         time.Duration
	// Startup takes how long the machine took to become a node, leg by leg.
	Startup func(StartupPhase, time.Duration)
	Clock   clock.Clock
	Logger  *zap.Logger
}

// Manager keeps one Node. It is safe for concurrent use.
type Manager struct {
	config Config
	nodes  rest.Resource
	wake   chan struct{}
	known  chan struct{} // closed by know
	know   func()

	mu       sync.RWMutex
	node     *core.Node // newest that the API has; before registration as we would make it
	own      *core.Node // the same with our own sizes
	cordoned bool       // as reported to people
	deleted  bool
	reported time.Time

	// Used by runStatus only:
	startup    startup
	registered bool   // by this kubelet; the watch may show an earlier one's before
	podCIDRs   string // as reported to the runtime
}

// New returns a Manager that does nothing before Run.
func New(config Config) *Manager {
	m := &Manager{config: config, nodes: config.Client.Resource(core.Nodes, ""), wake: make(chan struct{}, 1), known: make(chan struct{})}
	m.know = sync.OnceFunc(func() { close(m.known) })
	m.startup = startup{booted: config.Machine.Booted, begun: config.Clock.Now(), now: config.Clock.Now, observe: config.Startup}
	m.node = m.newNode()
	m.node.Status = m.status(&corev1.NodeStatus{}, state{now: config.Clock.Now()})
	m.own = m.node
	return m
}

// Node is the Node as currently known, with this kubelet's capacity; it must not be changed.
func (m *Manager) Node() *core.Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.own
}

// Known is closed when the Node has been read from the API, with what others than this
// kubelet gave it.
func (m *Manager) Known() <-chan struct{} { return m.known }

// Reread reads the Node from the API now, for who can't wait for the watch.
func (m *Manager) Reread(ctx context.Context) error {
	node := &core.Node{}
	if err := m.nodes.Get(ctx, m.config.Name, node); err != nil {
		return fmt.Errorf("read node %s: %w", m.config.Name, err)
	}
	m.setNode(node)
	return nil
}

// UpdateStatusSoon makes the status be checked now.
func (m *Manager) UpdateStatusSoon() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run registers the node and keeps its status and lease until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.runStatus(ctx) })
	group.Go(func() error { return m.runLease(ctx) })
	reflector := watch.NewReflector(m.nodes, func() *core.Node { return &core.Node{} }, nodeSink{m},
		watch.Options{FieldSelector: "metadata.name=" + m.config.Name, Clock: m.config.Clock, Logger: m.config.Logger})
	group.Go(func() error { return reflector.Run(ctx) })
	return group.Wait()
}

// nodeSink receives the changes of the own Node from its watch.
type nodeSink struct{ *Manager }

func (s nodeSink) Replace(nodes []*core.Node) {
	if len(nodes) == 0 {
		s.nodeDeleted()
		return
	}
	s.setNode(nodes[0])
}

func (s nodeSink) Apply(t watch.Type, node *core.Node) {
	if t == watch.Deleted {
		s.nodeDeleted()
		return
	}
	s.setNode(node)
}

func (m *Manager) setNode(node *core.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.node.UID == node.UID && core.Older(node, m.node) {
		return // the watch was faster than the answer to our own request
	}
	if !slices.Equal(m.node.Spec.PodCIDRs, node.Spec.PodCIDRs) {
		m.UpdateStatusSoon()
	}
	m.node, m.own, m.deleted = node, m.withOwnSizes(node), false
	m.know()
	m.recordSchedulable(node)
}

// nodeDeleted makes the next check of the status register the node again.
func (m *Manager) nodeDeleted() {
	m.mu.Lock()
	m.deleted = m.node.UID != ""
	m.mu.Unlock()
	m.UpdateStatusSoon()
}

var retry = backoff.Policy{Initial: 100 * time.Millisecond, Max: 7 * time.Second, Jitter: 0.2}

func (m *Manager) runStatus(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		wait := m.config.StatusUpdateFrequency
		err := m.update(ctx)
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			failures++
			wait = retry.Delay(failures)
			if failures == 1 {
				m.config.Logger.Warn("node status not sent, will retry", zap.Error(err))
			}
		}
		m.wait(ctx, wait)
	}
	return ctx.Err()
}

func (m *Manager) wait(ctx context.Context, d time.Duration) {
	timer := m.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-m.wake:
	case <-timer.C():
	}
}

// update brings the API's picture up to date, registering the node if need be.
func (m *Manager) update(ctx context.Context) error {
	m.mu.RLock()
	node, unknown := m.node, !m.registered || m.deleted
	m.mu.RUnlock()
	s := m.observe(ctx)
	if unknown {
		var err error
		if node, err = m.register(ctx, s); err != nil {
			return err
		}
		m.registered = true
	}
	m.updateRuntimePodCIDRs(ctx, node)
	status, labels := m.status(&node.Status, s), platformLabels(node.Labels)
	if sameButHeartbeat(node.Status, status) && labels == nil && m.config.Clock.Since(m.reported) < m.config.StatusReportFrequency {
		return nil
	}
	return m.send(ctx, node, labels, status)
}

// runtimeWithin limits the runtime's calls here. A runtime that does not answer
// must not delay the report that the node is therefore not ready.
const runtimeWithin = 5 * time.Second

func (m *Manager) observe(ctx context.Context) state {
	ctx, cancel := context.WithTimeout(ctx, runtimeWithin)
	defer cancel()
	images, err := m.config.Runtime.Images(ctx)
	if err != nil {
		images = m.Node().Status.Images // the runtime is away; it will have them again
	}
	return state{
		images:   images,
		runtime:  m.config.Runtime.RuntimeVersion(),
		features: m.config.Runtime.Features(),
		notReady: m.config.Runtime.NotReady(),
		now:      m.config.Clock.Now(),
	}
}

// register makes the Node, or takes over the one that is there.
func (m *Manager) register(ctx context.Context, s state) (*core.Node, error) {
	object := m.newNode()
	object.Status = m.status(&corev1.NodeStatus{}, s)
	node := &core.Node{}
	if !m.config.Register {
		if err := m.nodes.Get(ctx, m.config.Name, node); err != nil {
			return nil, fmt.Errorf("node %s, which is registered by others: %w", m.config.Name, err)
		}
		m.setNode(node)
		return node, nil
	}
	m.startup.attempt()
	err := m.nodes.Create(ctx, object, node)
	created := err == nil
	if created {
		m.startup.registered()
	}
	if apierrors.IsAlreadyExists(err) {
		node, err = m.takeOver(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", m.config.Name, err)
	}
	m.setNode(node)
	m.config.Logger.Info("node registered", zap.String("uid", string(node.UID)))
	m.recordRegistered(node, &object.Status, created)
	m.noteReady(&object.Status)
	return node, nil
}

// takeOver adopts the Node of an earlier kubelet, and corrects the labels that
// the kubelet owns.
func (m *Manager) takeOver(ctx context.Context) (*core.Node, error) {
	node := &core.Node{}
	if err := m.nodes.Get(ctx, m.config.Name, node); err != nil {
		return nil, err
	}
	labels := m.ownLabels()
	maps.Copy(labels, m.config.Labels)
	wanted := map[string]string{}
	for key, value := range labels {
		if has, ok := node.Labels[key]; !ok || has != value {
			wanted[key] = value
		}
	}
	if len(wanted) == 0 {
		return node, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": wanted}})
	if err != nil {
		return nil, fmt.Errorf("encode labels: %w", err)
	}
	return node, m.nodes.Patch(ctx, node.Name, types.MergePatchType, patch, node)
}

// send patches what is different in the status, and the labels that are given.
func (m *Manager) send(ctx context.Context, node *core.Node, labels map[string]string, status corev1.NodeStatus) error {
	before, err := json.Marshal(core.Node{Status: node.Status})
	if err != nil {
		return fmt.Errorf("encode node status: %w", err)
	}
	after, err := json.Marshal(core.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Status: status})
	if err != nil {
		return fmt.Errorf("encode node status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil {
		return fmt.Errorf("compare node statuses: %w", err)
	}
	patched := &core.Node{}
	if err := m.nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, patch, patched, rest.Sub("status")); err != nil {
		if apierrors.IsNotFound(err) {
			m.nodeDeleted()
		}
		return errors.Join(errNotSent, err)
	}
	m.recordChanges(node, &node.Status, &status)
	m.noteReady(&status)
	m.setNode(patched)
	m.reported = m.config.Clock.Now()
	return nil
}

var errNotSent = errors.New("patch node status")

func equalStatus(a, b corev1.NodeStatus) bool { return equality.Semantic.DeepEqual(&a, &b) }
