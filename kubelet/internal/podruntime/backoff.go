package podruntime

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

const (
	// maxCrashBackOff is the longest wait before a failing container is restarted;
	// after a container has run for twice as long, its back-off starts from the
	// beginning.
	maxCrashBackOff     = 300 * time.Second
	initialCrashBackOff = 10 * time.Second
)

// containerKey is one container of one pod in one version of its spec: a
// changed spec is not held back for the failures of the previous one. That
// includes resources, as with upstream's kubelet: too little of them may be why
// it failed.
type containerKey struct {
	pod       types.UID
	name      string
	hash      uint64
	resources string
}

func (s *podSync) key(c *core.Container) containerKey {
	resources, _ := json.Marshal(c.Resources) // which never fails
	return containerKey{pod: s.pod.UID, name: c.Name, hash: runtimestate.HashContainer(c), resources: string(resources)}
}

// applyBackOff reports the containers whose back-off has not run out.
func (s *podSync) applyBackOff(starts []podactions.Start) {
	for _, c := range starts {
		if c.BackOff == 0 {
			continue
		}
		spec, fieldPath := s.spec(c)
		s.Events.ContainerEventf(s.pod, fieldPath, corev1.EventTypeWarning, "BackOff",
			"Back-off restarting failed container %s in pod %s", c.Name, describe(s.pod))
		s.wait(c.Name, runtimestate.ReasonCrashLoopBackOff, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s",
			s.crashes.Delay(s.key(spec)), c.Name, describe(s.pod)), c.BackOff)
		s.tellBackOff(c)
	}
}

// due returns the starts whose back-off has expired.
func due(starts []podactions.Start) []podactions.Start {
	return slices.DeleteFunc(slices.Clone(starts), func(c podactions.Start) bool { return c.BackOff > 0 })
}

// ends knows when containers ended, for their back-off, on a monotonic clock.
// The runtime's record is from the machine's clock, which may be set meanwhile:
// set back by a day, it would delay a container for a day.
type ends struct {
	forget time.Duration // after which nobody waits for a back-off any more

	mu    sync.Mutex
	seen  map[containerKey]end
	swept time.Time
}

type end struct {
	id runtimestate.ContainerID
	at time.Time
}

func newEnds(maxBackOff time.Duration) *ends {
	return &ends{forget: 2 * maxBackOff, seen: map[containerKey]end{}}
}

// of is when an exited container ended: the runtime's time when that is first
// seen, unless it is in the future, and from then on the same.
func (e *ends) of(key containerKey, last *runtimestate.ContainerStatus, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.seen[key]; ok && known.id == last.ID {
		return known.at
	}
	e.sweep(now)
	at := now.Add(-max(0, now.Sub(last.FinishedAt)))
	e.seen[key] = end{id: last.ID, at: at}
	return at
}

// sweep keeps the map as small as the set of containers that ended lately.
func (e *ends) sweep(now time.Time) {
	if now.Sub(e.swept) < e.forget {
		return
	}
	e.swept = now
	for key, one := range e.seen {
		if now.Sub(one.at) > e.forget {
			delete(e.seen, key)
		}
	}
}
