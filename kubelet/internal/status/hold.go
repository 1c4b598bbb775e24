package status

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/backoff"
	"kctl/proto/core"
)

// holdFor is how long an intermediate status waits for the next one: longer
// than it takes to create and start a container in an existing sandbox.
const holdFor = 200 * time.Millisecond

// isStep tells whether the only news about a pod is that it has its sandbox.
// The kubelet goes on to its containers at that moment, so the next status
// usually follows soon and includes this: a separate patch would cost the
// containers' start more than it is worth.
func isStep(before, after *core.PodStatus) bool {
	if before.Phase != corev1.PodPending || after.Phase != corev1.PodPending || after.PodIP == "" {
		return false
	}
	was, is := withoutSandbox(*before), withoutSandbox(*after)
	return equality.Semantic.DeepEqual(&was, &is)
}

func withoutSandbox(status core.PodStatus) core.PodStatus {
	status.PodIP, status.PodIPs = "", nil
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c core.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers
	})
	return status
}

// hold delays the entry's newest status if it is just a step, and ends the
// delay if it is more than that.
func (m *Manager) hold(uid types.UID, e *entry, step bool) {
	if !step || m.ctx == nil || m.ctx.Err() != nil {
		e.held = time.Time{}
		return
	}
	if !e.held.IsZero() {
		return
	}
	e.held = m.options.Clock.Now().Add(holdFor)
	ctx := m.ctx
	m.sending.Go(func() {
		if backoff.Sleep(ctx, m.options.Clock, holdFor) != nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		e.held = time.Time{}
		m.wake(uid, e)
	})
}
