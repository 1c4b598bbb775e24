package synchandler

import (
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/lifecycle"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// The messages of a pod that ends to make room for a critical one.
const (
	preempted        = "Preempted in order to admit critical pod"
	preemptedBecause = "Pod was preempted by Kubelet to accommodate a critical pod."
)

// Victims are waited for by the critical pod's worker.
type Victims interface {
	WaitForVictims(critical types.UID, victims []lifecycle.Victim)
}

// PreemptionOptions are what a Preemption asks and tells.
type PreemptionOptions struct {
	Pods    *podmanager.Manager
	Workers *podworker.Workers
	Killer  *podkiller.Killer
	Victims Victims
	// Allocatable is the part of the node that pods may have.
	Allocatable func() corev1.ResourceList

	Events  Events
	Metrics *metrics.Metrics
	Clock   clock.PassiveClock
	Logger  *zap.Logger
}

// Preemption makes room for critical pods.
type Preemption struct{ o PreemptionOptions }

// NewPreemption returns a Preemption.
func NewPreemption(o PreemptionOptions) *Preemption { return &Preemption{o} }

// preemptFor ends pods for a critical pod that was rejected for lack of
// resources, and admits it; if that is not possible, the rejection stays. The
// others get their grace periods. The critical pod waits for them
// (lifecycle.WaitForVictims); the sync loop does not, because it has other pods to
// handle.
func (p *Preemption) preemptFor(pod *core.Pod, others []*core.Pod, refused admit.Decision) admit.Decision {
	leaving := func(other *core.Pod) bool { return p.o.Workers.TerminationRequested(other.UID) }
	victims := admit.Victims(pod, others, p.o.Allocatable(), leaving)
	if len(victims) == 0 {
		return refused
	}
	ends := make([]lifecycle.Victim, 0, len(victims))
	for _, victim := range victims {
		// The granted pod may be a different object from the desired one.
		if desired, ok := p.o.Pods.ByUID(victim.UID); ok {
			victim = desired
		}
		done := make(chan struct{})
		p.preempt(victim, pod, refused.InsufficientResource, leaving(victim), done)
		ends = append(ends, lifecycle.Victim{Pod: victim, Done: done, Until: p.o.Clock.Now().Add(preemptionTimeout(victim))})
	}
	p.o.Victims.WaitForVictims(pod.UID, ends)
	return admit.Decision{Admitted: true}
}

// preempt asks a pod to end. One that was ending already keeps its grace period and
// reason.
func (p *Preemption) preempt(pod, critical *core.Pod, resource corev1.ResourceName, ending bool, done chan<- struct{}) {
	if ending {
		p.o.Killer.Kill(pod, podworker.KillOptions{Done: done})
		return
	}
	p.o.Logger.Warn("pod preempted", daemon.PodFields(pod),
		zap.String("for", critical.Namespace+"/"+critical.Name), zap.String("resource", string(resource)))
	p.o.Events.Eventf(pod, corev1.EventTypeWarning, podkiller.Preempting, "%s", preempted)
	p.o.Metrics.Preemptions.WithLabelValues(string(resource)).Inc()
	p.o.Killer.Terminate(pod, podkiller.Termination{
		Reason: podkiller.Preempting, Message: preempted, Disrupted: preemptedBecause, AsItEnds: true, Done: done,
	})
}

// preemptionTimeout is how long a critical pod waits for another's end: one and a half
// times that pod's grace period, and at least as long as a runtime may take to kill
// it.
func preemptionTimeout(pod *core.Pod) time.Duration {
	grace := core.Seconds(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))
	return max(grace+grace/2, 10*time.Second)
}
