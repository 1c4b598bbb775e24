package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/daemon"
)

// updateBuffer is how many updates may wait for the sync loop before sources
// block.
const updateBuffer = 64

// Mux merges the states of all sources into one stream of PodUpdates. It is
// safe for concurrent use.
type Mux struct {
	// Warn, if there is one, makes an event of a pod that is ignored for its name.
	Warn func(pod *core.Pod, reason, message string)

	clock   clock.PassiveClock
	logger  *zap.Logger
	updates chan core.PodUpdate

	mu      sync.Mutex
	sources map[string]*state
	claimed map[string]map[types.UID]bool // the UIDs of each source's pods
}

// state is the last state of one source.
type state struct {
	mu      sync.Mutex  // held while the source's updates are sent, to keep their order
	given   []*core.Pod // as Set got them
	pods    map[types.UID]known
	ignored map[identity]bool // those that distinct left out, which the log says once
}

// precedence says which of several sources has a UID that pods of all of them have. The API
// gives each pod a UID of its own, so a manifest with the same is a copy of that pod.
var precedence = []string{core.ApiserverSource, core.FileSource, core.HTTPSource}

// known is a pod as the source gave it, and as it was sent on.
type known struct {
	given, sent *core.Pod
}

// NewMux returns a Mux without sources.
func NewMux(clock clock.PassiveClock, logger *zap.Logger) *Mux {
	return &Mux{
		clock: clock, logger: logger,
		updates: make(chan core.PodUpdate, updateBuffer), sources: map[string]*state{}, claimed: map[string]map[types.UID]bool{},
	}
}

// Updates is where the differences come out. The pods in them are shared and
// must not be changed.
func (m *Mux) Updates() <-chan core.PodUpdate { return m.updates }

// Set takes the complete state of a source, and sends the differences. The
// first time it sends at least one update, so that the receiver knows that it
// has seen the source. It blocks while the receiver is behind. A pod that is
// the very same object as before counts as unchanged.
func (m *Mux) Set(ctx context.Context, source string, pods []*core.Pod) {
	s, first := m.source(source)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = pods
	pods = m.distinct(s, source, pods)
	m.claim(ctx, source, pods)
	byOp := s.merge(pods, source, m.clock.Now())
	if sent := m.sendAll(ctx, source, byOp); first && !sent {
		m.send(ctx, core.PodUpdate{Op: core.ADD, Source: source})
	}
}

// Expect claims the UIDs of a source's pods until the source is heard: an earlier kubelet runs
// them, and a copy in another source, which may be heard first, would end them. A source that
// was heard has said itself what it has.
func (m *Mux) Expect(source string, uids map[types.UID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sources[source] == nil {
		m.claimed[source] = uids
	}
}

// claim takes the UIDs of a source's pods from the sources after it, whose pods with these
// are removed first.
func (m *Mux) claim(ctx context.Context, source string, pods []*core.Pod) {
	uids := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		uids[pod.UID] = true
	}
	m.mu.Lock()
	m.claimed[source] = uids
	m.mu.Unlock()
	for _, after := range precedence[slices.Index(precedence, source)+1:] {
		m.mu.Lock()
		other := m.sources[after]
		m.mu.Unlock()
		if other != nil {
			m.yield(ctx, other, after, uids)
		}
	}
}

// yield removes those of a source's pods whose UIDs another source has.
func (m *Mux) yield(ctx context.Context, s *state, source string, uids map[types.UID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.pods {
		if uids[uid] {
			m.sendAll(ctx, source, s.merge(m.distinct(s, source, s.given), source, m.clock.Now()))
			return
		}
	}
}

// isClaimed tells whether a source before this one has the UID.
func (m *Mux) isClaimed(source string, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(precedence[:max(0, slices.Index(precedence, source))],
		func(before string) bool { return m.claimed[before][uid] })
}

func (m *Mux) sendAll(ctx context.Context, source string, byOp map[core.PodOperation][]*core.Pod) (sent bool) {
	for _, op := range []core.PodOperation{core.REMOVE, core.ADD, core.UPDATE, core.DELETE, core.RECONCILE} {
		if len(byOp[op]) > 0 {
			sent = true
			m.send(ctx, core.PodUpdate{Pods: byOp[op], Op: op, Source: source})
		}
	}
	return sent
}

func (m *Mux) source(name string) (s *state, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sources[name]
	if !ok {
		s = &state{pods: map[types.UID]known{}}
		m.sources[name] = s
	}
	return s, !ok
}

func (m *Mux) send(ctx context.Context, update core.PodUpdate) {
	select {
	case m.updates <- update:
	case <-ctx.Done():
	}
}

// distinct leaves out pods whose full name or UID another pod of the same
// source has already, or whose UID a source before it has: a node can't run both. Files
// and URLs are read repeatedly, so this is reported only for pods that were not left out
// the last time.
func (m *Mux) distinct(s *state, source string, pods []*core.Pod) []*core.Pod {
	names, uids := make(map[types.NamespacedName]bool, len(pods)), make(map[types.UID]bool, len(pods))
	distinct, ignored := pods[:0:0], map[identity]bool{}
	for _, pod := range pods {
		who := identityOf(pod)
		if !names[who.name] && !uids[who.uid] && !m.isClaimed(source, who.uid) {
			names[who.name], uids[who.uid] = true, true
			distinct = append(distinct, pod)
			continue
		}
		ignored[who] = true
		if !s.ignored[who] {
			m.logger.Warn("pod ignored: there is another of the same name or uid",
				zap.String("source", source), daemon.PodFields(pod))
			if names[who.name] && m.Warn != nil {
				m.Warn(pod, "FailedValidation", fmt.Sprintf("Error validating pod %s_%s(%s) from %s due to duplicate pod name %q, ignoring",
					pod.Name, pod.Namespace, pod.UID, source, pod.Name))
			}
		}
	}
	s.ignored = ignored
	return distinct
}

// identity distinguishes pods: manifests can give one UID to pods of different
// names.
type identity struct {
	name types.NamespacedName
	uid  types.UID
}

func identityOf(pod *core.Pod) identity {
	return identity{name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID}
}

// merge takes over the new state and returns what is different, by operation.
func (s *state) merge(pods []*core.Pod, source string, now time.Time) map[core.PodOperation][]*core.Pod {
	byOp := map[core.PodOperation][]*core.Pod{}
	current := make(map[types.UID]known, len(pods))
	for _, pod := range pods {
		old, exists := s.pods[pod.UID]
		if exists && old.given == pod {
			current[pod.UID] = old
			continue
		}
		if exists && identityOf(old.given) != identityOf(pod) {
			byOp[core.REMOVE] = append(byOp[core.REMOVE], old.sent)
			old = known{}
		}
		sent := annotated(pod, source, old.sent, now)
		current[pod.UID] = known{given: pod, sent: sent}
		if op, changed := operation(old.sent, sent); changed {
			byOp[op] = append(byOp[op], sent)
		}
	}
	for uid, old := range s.pods {
		if _, ok := current[uid]; !ok {
			byOp[core.REMOVE] = append(byOp[core.REMOVE], old.sent)
		}
	}
	s.pods = current
	return byOp
}

// operation is what happened to a pod of a source; old is nil for a new one.
func operation(old, pod *core.Pod) (op core.PodOperation, changed bool) {
	switch {
	case old == nil:
		return core.ADD, true
	case desiredDiffers(old, pod) && pod.DeletionTimestamp != nil:
		return core.DELETE, true
	case desiredDiffers(old, pod):
		return core.UPDATE, true
	case !equality.Semantic.DeepEqual(&old.Status, &pod.Status):
		return core.RECONCILE, true
	default:
		return core.SET, false
	}
}

func desiredDiffers(a, b *core.Pod) bool {
	return !(equality.Semantic.DeepEqual(a.DeletionTimestamp, b.DeletionTimestamp) &&
		equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		equality.Semantic.DeepEqual(&a.Spec, &b.Spec) &&
		maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations))
}

// annotated is a copy of the pod that says where and when it was seen. A pod
// that was seen before keeps the time.
func annotated(pod *core.Pod, source string, before *core.Pod, now time.Time) *core.Pod {
	copied := *pod
	copied.Annotations = maps.Clone(pod.Annotations)
	if copied.Annotations == nil {
		copied.Annotations = map[string]string{}
	}
	copied.Annotations[core.ConfigSourceAnnotation] = source
	seen := now.Format(time.RFC3339Nano)
	if before != nil {
		seen = before.Annotations[core.ConfigSeenAnnotation]
	}
	copied.Annotations[core.ConfigSeenAnnotation] = seen
	return &copied
}
