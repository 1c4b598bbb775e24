// Package podmanager holds the pods that are desired on this node, as the
// sources have them now, and ties static pods to their mirror pods in the API.
//
// The sync loop writes it; all rooms read it. A pod that is not in it is gone
// from its source, whatever of it still runs. It never starts, ends or writes
// anything.
package podmanager

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// Manager is safe for concurrent use. The pods in it are shared and must not
// be changed.
type Manager struct {
	mu      sync.RWMutex
	pods    map[types.UID]*core.Pod // all but mirror pods
	mirrors map[types.UID]*core.Pod
	// By full name.
	podsByName, mirrorsByName map[string]*core.Pod
}

// New returns an empty Manager.
func New() *Manager {
	return &Manager{
		pods: map[types.UID]*core.Pod{}, mirrors: map[types.UID]*core.Pod{},
		podsByName: map[string]*core.Pod{}, mirrorsByName: map[string]*core.Pod{},
	}
}

// fullName is a pod's name on a node: unlike its UID, it is shared by a static
// pod and its mirror.
func fullName(pod *core.Pod) string { return pod.Namespace + "/" + pod.Name }

// IsStatic says that the pod comes from a file or a URL.
func IsStatic(pod *core.Pod) bool {
	source, ok := pod.Annotations[core.ConfigSourceAnnotation]
	return ok && source != core.ApiserverSource
}

// IsMirrorOf says that mirror shows the static pod as it is now.
func IsMirrorOf(mirror, pod *core.Pod) bool {
	return fullName(mirror) == fullName(pod) &&
		mirror.Annotations[core.ConfigMirrorAnnotation] == pod.Annotations[core.ConfigHashAnnotation]
}

// IsCritical says that the node or the cluster can't do without the pod: static
// pods, and those of a critical priority.
func IsCritical(pod *core.Pod) bool {
	return IsStatic(pod) || core.IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= core.SystemCriticalPriority
}

// Set adds the pod, or replaces what was there of it.
func (m *Manager) Set(pod *core.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	byUID, byName := m.maps(pod)
	byUID[pod.UID] = pod
	byName[fullName(pod)] = pod
}

// Remove forgets the pod. Its name is freed only if no other pod has it by now.
func (m *Manager) Remove(pod *core.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	byUID, byName := m.maps(pod)
	delete(byUID, pod.UID)
	if named, ok := byName[fullName(pod)]; ok && named.UID == pod.UID {
		delete(byName, fullName(pod))
	}
}

func (m *Manager) maps(pod *core.Pod) (byUID map[types.UID]*core.Pod, byName map[string]*core.Pod) {
	if core.IsMirror(pod) {
		return m.mirrors, m.mirrorsByName
	}
	return m.pods, m.podsByName
}

// Pods are all desired pods without the mirrors, in no order.
func (m *Manager) Pods() []*core.Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	pods := make([]*core.Pod, 0, len(m.pods))
	for _, pod := range m.pods {
		pods = append(pods, pod)
	}
	return pods
}

// ByUID is the desired pod with that UID; mirrors are not found.
func (m *Manager) ByUID(uid types.UID) (*core.Pod, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	pod, ok := m.pods[uid]
	return pod, ok
}

// ByName is the desired pod of that name; mirrors are not found.
func (m *Manager) ByName(namespace, name string) (*core.Pod, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	pod, ok := m.podsByName[namespace+"/"+name]
	return pod, ok
}

// Mirror is the mirror pod of a static pod, or nil.
func (m *Manager) Mirror(pod *core.Pod) *core.Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mirrorsByName[fullName(pod)]
}

// PodOf is the static pod that a mirror pod shows, or nil.
func (m *Manager) PodOf(mirror *core.Pod) *core.Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.podsByName[fullName(mirror)]
}

// APIPod is the object that stands for the pod in the API: the pod itself, or
// the mirror of a static pod; nil if a static pod has none yet.
func (m *Manager) APIPod(pod *core.Pod) *core.Pod {
	if IsStatic(pod) {
		return m.Mirror(pod)
	}
	return pod
}

// Mirrors is the number of mirror pods, those among them whose static pod is gone.
func (m *Manager) Mirrors() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.mirrors)
}

// OrphanedMirrors are the mirror pods whose static pod is gone.
func (m *Manager) OrphanedMirrors() []*core.Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var orphans []*core.Pod
	for name, mirror := range m.mirrorsByName {
		if _, ok := m.podsByName[name]; !ok {
			orphans = append(orphans, mirror)
		}
	}
	return orphans
}
