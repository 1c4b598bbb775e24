package kubelet

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
)

// waits knows why containers of pods do not run, as the pods' last syncs found it.
type waits struct {
	mu      sync.Mutex
	reasons map[types.UID]map[string]runtimestate.Waiting
}

// of is why the pod's containers wait, by their names; the caller must not change it.
func (w *waits) of(uid types.UID) map[string]runtimestate.Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reasons[uid] // replaced, never changed
}

// note adds the result of a sync: a container that it started no longer waits.
func (w *waits) note(uid types.UID, found map[string]runtimestate.Waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := map[string]runtimestate.Waiting{}
	maps.Copy(next, w.reasons[uid])
	maps.Copy(next, found)
	maps.DeleteFunc(next, func(_ string, why runtimestate.Waiting) bool { return why.Reason == "" })
	if w.reasons == nil {
		w.reasons = map[types.UID]map[string]runtimestate.Waiting{}
	}
	w.reasons[uid] = next
}

func (w *waits) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.reasons, uid)
}
