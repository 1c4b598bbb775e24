package allocation

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/fieldpath"
	"kctl/proto/core"
)

// Pod stands for the pod as a whole (KEP-2837) in place of a container's name:
// no container can have this name.
const Pod = ""

// Manager is safe for concurrent use. It holds an entry for each pod that was
// admitted, until Forget.
type Manager struct {
	mu       sync.Mutex
	pods     map[types.UID]*entry
	restored map[types.UID]Record // of pods that were not seen yet
	changes  int
	changed  chan struct{} // full if something is to be recorded
}

type byContainer = map[string]corev1.ResourceRequirements

type entry struct {
	allocated byContainer                    // what the pod is to have
	actual    byContainer                    // what its running containers have
	limits    map[string]corev1.ResourceList // what limits them: their own limit, or else the pod's
	pending   *core.PodCondition
	failed    string // why the grant could not be carried out, if it could not
}

// New returns an empty Manager.
func New() *Manager {
	return &Manager{pods: map[types.UID]*entry{}, restored: map[types.UID]Record{}, changed: make(chan struct{}, 1)}
}

// Admit notes that the pod was admitted with what Allocated returns. Only admitted pods are
// recorded: upstream's kubelet takes a pod that is recorded for one that was admitted.
func (m *Manager) Admit(pod *core.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry(pod)
}

// Fits tells whether the given pod may have its requests: nil, or the condition
// that says why not. granted returns other pods as Allocated does, and is valid
// only during the call.
type Fits func(pod *core.Pod, granted func(other *core.Pod) *core.Pod) *core.PodCondition

// Allocate returns the pod with the resources that its containers are to have:
// those of its spec if they are already granted or fits allows them, and
// otherwise those granted before. A pod that is new to the Manager has what was
// recorded of it, or else what its status in the API says or, if it has never run,
// what it asks for.
func (m *Manager) Allocate(pod *core.Pod, fits Fits) *core.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	e.pending = nil
	if asked := requirements(pod); !same(asked, e.allocated) {
		if e.pending = fits(pod, func(other *core.Pod) *core.Pod { return apply(other, m.known(other).allocated) }); e.pending == nil {
			e.allocated = asked
			m.changes++
			m.note()
		}
	}
	return apply(pod, e.allocated)
}

// Changes is how often a pod was granted something else than before. Who knows a pod before it
// asks will not miss a grant for which that pod did not count: it waits for one that is decided on.
func (m *Manager) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// AsActual returns the pod with what it and its containers currently run with.
func (m *Manager) AsActual(pod *core.Pod) *core.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return apply(pod, m.known(pod).actual)
}

// Pods returns the pod as granted and as it runs, if known.
func (m *Manager) Pods(pod *core.Pod) (granted, actual *core.Pod, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[pod.UID]; e != nil {
		return apply(pod, e.allocated), apply(pod, e.actual), true
	}
	return nil, nil, false
}

// Allocated returns the pod with what it was granted last, or would have if it were admitted now.
func (m *Manager) Allocated(pod *core.Pod) *core.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return apply(pod, m.known(pod).allocated)
}

// Pending is why the pod's request has not been granted; nil if it has.
func (m *Manager) Pending(uid types.UID) *core.PodCondition {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		return e.pending
	}
	return nil
}

// Actual is what a container runs with, as far as known; for limits that it does
// not have itself, the pod's.
func (m *Manager) Actual(uid types.UID, container string) (corev1.ResourceRequirements, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		r, known := e.actual[container]
		r.Limits = e.limits[container]
		return r, known
	}
	return corev1.ResourceRequirements{}, false
}

// SetFailure notes why a grant could not be carried out; "" if it could.
func (m *Manager) SetFailure(uid types.UID, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		e.failed = why
	}
}

// Failure is what SetFailure noted last.
func (m *Manager) Failure(uid types.UID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		return e.failed
	}
	return ""
}

// Container is what a container, or the Pod, was granted and what it runs with.
func (m *Manager) Container(uid types.UID, container string) (granted, actual corev1.ResourceRequirements, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[uid]
	if e == nil {
		return granted, actual, false
	}
	granted, known = e.allocated[container]
	return granted, e.actual[container], known
}

// SetActual notes that a container of the pod, as it was granted, runs with these
// resources now, and tells whether they are others than before.
func (m *Manager) SetActual(pod *core.Pod, container string, r corev1.ResourceRequirements) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID]
	if e == nil {
		return false
	}
	limits := fieldpath.Limits(pod, r.Limits)
	if equality.Semantic.DeepEqual(e.actual[container], r) && equality.Semantic.DeepEqual(e.limits[container], limits) {
		return false
	}
	e.actual[container], e.limits[container] = *r.DeepCopy(), limits
	m.note()
	return true
}

// SetPodActual notes that the pod as a whole now has what it was granted.
func (m *Manager) SetPodActual(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.pods[uid]; e != nil {
		delete(e.actual, Pod)
		if granted, has := e.allocated[Pod]; has {
			e.actual[Pod] = granted
		}
		m.note()
	}
}

// Forget drops what is known about a pod.
func (m *Manager) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
	delete(m.restored, uid)
	m.note()
}

// entry is the pod's entry, which is made if there is none.
func (m *Manager) entry(pod *core.Pod) *entry {
	e := m.known(pod)
	if m.pods[pod.UID] == nil {
		m.pods[pod.UID] = e
		delete(m.restored, pod.UID)
		m.note()
	}
	return e
}

// known is the pod's entry, or what it would be if it were made now.
func (m *Manager) known(pod *core.Pod) *entry {
	if e := m.pods[pod.UID]; e != nil {
		return e
	}
	e := &entry{allocated: recorded(pod), actual: byContainer{}, limits: map[string]corev1.ResourceList{}}
	maps.Copy(e.actual, e.allocated)
	was := with(pod, e.allocated)
	for name, r := range e.actual {
		e.limits[name] = fieldpath.Limits(was, r.Limits)
	}
	if r, ok := m.restored[pod.UID]; ok {
		e.restore(pod, r)
	}
	return e
}

// recorded is what the pod's status says that it has: an earlier kubelet may
// have ended in the middle of a change.
func recorded(pod *core.Pod) byContainer {
	all := requirements(pod)
	if has := pod.Status.Resources; has != nil && pod.Spec.Resources != nil {
		asked := all[Pod]
		asked.Requests = overlay(asked.Requests, common(has.Requests, asked.Requests))
		asked.Limits = overlay(asked.Limits, common(has.Limits, asked.Limits))
		all[Pod] = asked
	}
	for status := range core.ContainerStatuses(&pod.Status) {
		has := status.Resources
		asked, known := all[status.Name]
		if has == nil || !known {
			continue
		}
		asked.Requests, asked.Limits = overlay(asked.Requests, has.Requests), overlay(asked.Limits, has.Limits)
		all[status.Name] = asked
	}
	return all
}

// overlay is list with cpu and memory as in has.
func overlay(list, has corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	maps.Copy(out, list)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		delete(out, name)
		if quantity, ok := has[name]; ok {
			out[name] = quantity
		}
	}
	return out
}

// common is the part of has that is also asked for: what a pod's status says about
// the pod as a whole can be its containers' sum.
func common(has, asked corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name := range asked {
		if quantity, ok := has[name]; ok {
			out[name] = quantity
		}
	}
	return out
}

func requirements(pod *core.Pod) byContainer {
	all := byContainer{}
	if pod.Spec.Resources != nil {
		all[Pod] = *pod.Spec.Resources.DeepCopy()
	}
	for c := range core.Containers(&pod.Spec) {
		all[c.Name] = *c.Resources.DeepCopy()
	}
	return all
}

func same(a, b byContainer) bool { return equality.Semantic.DeepEqual(a, b) }

// apply returns the pod itself if nothing differs: that is the common case, and
// pods are large.
func apply(pod *core.Pod, resources byContainer) *core.Pod {
	if same(requirements(pod), resources) {
		return pod
	}
	return with(pod, resources)
}

func with(pod *core.Pod, resources byContainer) *core.Pod {
	changed := pod.DeepCopy()
	changed.Spec.Resources = nil
	if r, known := resources[Pod]; known {
		changed.Spec.Resources = r.DeepCopy()
	}
	for c := range core.Containers(&changed.Spec) {
		if r, known := resources[c.Name]; known {
			c.Resources = *r.DeepCopy()
		}
	}
	return changed
}
