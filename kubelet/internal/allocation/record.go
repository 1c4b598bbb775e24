package allocation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/fieldpath"
	"kctl/proto/core"
)

// Record is what is to be known of a pod after a restart, by container or Pod. What is nil is
// not known.
type Record struct {
	Granted map[string]corev1.ResourceRequirements
	// Actual has, for containers, the limits that are in force: their own, or else the pod's.
	Actual map[string]corev1.ResourceRequirements
}

// Restore takes over what an earlier kubelet recorded. It must be called before
// anything else.
func (m *Manager) Restore(records map[types.UID]Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.restored, records)
}

// Records is what is to be recorded now, of pods that were not admitted again yet, too.
func (m *Manager) Records() map[types.UID]Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(m.restored)
	for uid, e := range m.pods {
		actual := byContainer{}
		for name, r := range e.actual {
			if name != Pod {
				r.Limits = e.limits[name]
			}
			actual[name] = r
		}
		all[uid] = Record{Granted: maps.Clone(e.allocated), Actual: actual}
	}
	return all
}

// Changed receives when Records are others than before.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

func (m *Manager) note() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Retain forgets all pods but those that are known.
func (m *Manager) Retain(known func(types.UID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.pods) + len(m.restored)
	maps.DeleteFunc(m.pods, func(uid types.UID, _ *entry) bool { return !known(uid) })
	maps.DeleteFunc(m.restored, func(uid types.UID, _ Record) bool { return !known(uid) })
	if len(m.pods)+len(m.restored) != before {
		m.note()
	}
}

// restore replaces what a pod's status says by what was recorded, which is more exact: the
// status may not have been sent any more. It stands where nothing was recorded.
func (e *entry) restore(pod *core.Pod, r Record) {
	if r.Granted != nil {
		e.allocated = recordedOf(pod, e.allocated, r.Granted)
	}
	if r.Actual == nil {
		return
	}
	was := with(pod, e.allocated)
	e.actual = recordedOf(pod, e.allocated, r.Actual)
	for name, has := range r.Actual {
		granted, known := e.allocated[name]
		if !known || name == Pod {
			continue
		}
		e.limits[name] = maps.Clone(has.Limits)
		inForce := fieldpath.Limits(was, granted.Limits)
		if slices.ContainsFunc([]corev1.ResourceList{granted.Limits, inForce},
			func(l corev1.ResourceList) bool { return sameSize(l, has.Limits) }) {
			actual := e.actual[name]
			actual.Limits = granted.Limits
			e.actual[name], e.limits[name] = actual, inForce
		}
	}
}

// recordedOf is what was recorded of the pod as it is now, and what is otherwise known of the
// rest.
func recordedOf(pod *core.Pod, otherwise, recorded byContainer) byContainer {
	all := requirements(pod)
	if _, has := recorded[Pod]; !has {
		delete(all, Pod)
	}
	for name, r := range all {
		if has, ok := recorded[name]; ok {
			r.Requests, r.Limits = overlay(r.Requests, has.Requests), overlay(r.Limits, has.Limits)
		} else {
			r = otherwise[name]
		}
		all[name] = r
	}
	return all
}

// sameSize compares what can be changed of a running container.
func sameSize(a, b corev1.ResourceList) bool {
	return equality.Semantic.DeepEqual(overlay(nil, a), overlay(nil, b))
}
