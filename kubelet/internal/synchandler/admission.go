package synchandler

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/shutdown"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
)

// Shutdown tells whether the machine is shut down.
type Shutdown interface{ ShuttingDown() bool }

// Eviction says what the node is short of that keeps a pod away; "" for nothing.
type Eviction interface{ Admit(pod *core.Pod) string }

// Runtime tells what the container runtime can do.
type Runtime interface {
	Reported() *runtimeapi.StatusResponse
	CheckImageVolumes(pod *core.Pod) error
}

// AdmissionOptions are what an Admission asks.
type AdmissionOptions struct {
	Shutdown Shutdown
	Eviction Eviction
	Runtime  Runtime
	// Node returns our node as it was last seen in the API, and Reread reads it again; nil without
	// an API server.
	Node   func() *core.Node
	Reread func(ctx context.Context) error
	// UnsafeSysctls are patterns of those that are allowed all the same.
	UnsafeSysctls []string
	AppArmor      bool // the kernel enforces profiles

	Pods        *podmanager.Manager
	Active      *activepods.Pods
	Allocations *allocation.Manager
	Preemption  *Preemption

	Clock  clock.PassiveClock
	Logger *zap.Logger
}

// Admission decides which new pods the node takes.
type Admission struct{ o AdmissionOptions }

// NewAdmission returns an Admission.
func NewAdmission(o AdmissionOptions) *Admission { return &Admission{o} }

// begin begins a round, in which new pods are admitted one after the other.
func (a *Admission) begin() *round { return &round{o: &a.o} }

// round has the pods that hold resources of the node, with what they were granted, while
// new pods are admitted one after the other: to look at all pods of the node for each of
// thousands takes minutes, in which nothing else is handled.
type round struct {
	o       *AdmissionOptions
	granted map[types.UID]*core.Pod
	at      time.Time // when all were looked at
	changes int       // of what pods are granted, until then
	reread  bool      // the node
}

// activeFor is how long those that end meanwhile may still count.
const activeFor = time.Second

// admit decides, given all pods that are on the node and have not ended.
func (r *round) admit(pod *core.Pod) admit.Decision {
	if r.o.Shutdown.ShuttingDown() {
		return admit.Refuse(shutdown.RejectedReason, "%s", shutdown.RejectedMessage)
	}
	if short := r.o.Eviction.Admit(pod); short != "" {
		return admit.Refuse(podkiller.Evicted, "%s", short)
	}
	for _, decision := range []admit.Decision{
		admit.Sysctls(pod, r.o.UnsafeSysctls), admit.AppArmor(pod, r.o.AppArmor), admit.SupplementalGroups(pod, r.o.Runtime.Reported()),
	} {
		if !decision.Admitted {
			return decision
		}
	}
	others := r.beside(pod)
	pod = r.o.Allocations.Allocated(pod) // an earlier kubelet may have refused a resize
	check := func() admit.Decision {
		return admit.Pod(pod, others, r.o.Node(), podmanager.IsStatic(pod), admit.Features, volume.Check, r.o.Runtime.CheckImageVolumes)
	}
	decision := check()
	if (decision.Reason == admit.ReasonNodeAffinity || decision.Reason == admit.ReasonTaint) && r.rereadNode() {
		decision = check()
	}
	if decision.InsufficientResource != "" && podmanager.IsCritical(pod) {
		return r.o.Preemption.preemptFor(pod, others, decision)
	}
	return decision
}

// beside are all of them but one, which the pod manager has already: what workers grant from
// now on leaves room for it.
func (r *round) beside(pod *core.Pod) []*core.Pod {
	changes := r.o.Allocations.Changes()
	if now := r.o.Clock.Now(); r.granted == nil || changes != r.changes || now.Sub(r.at) >= activeFor {
		r.granted, r.at, r.changes = map[types.UID]*core.Pod{}, now, changes
		for _, one := range r.o.Pods.Pods() {
			r.update(one)
		}
	}
	others := make([]*core.Pod, 0, len(r.granted))
	for uid, other := range r.granted {
		if uid != pod.UID {
			others = append(others, other)
		}
	}
	return others
}

// update takes in what has become of a pod: one that is not active counts no longer.
func (r *round) update(pod *core.Pod) {
	switch {
	case r.granted == nil: // nobody has asked yet
	case r.o.Active.Active(pod):
		r.granted[pod.UID] = r.o.Allocations.Allocated(pod)
	default:
		delete(r.granted, pod.UID)
	}
}

// rereadWithin bounds how long the sync loop waits for the node: the API server, which has
// just told of the pod, should answer at once.
const rereadWithin = 2 * time.Second

// rereadNode reads the node from the API for a pod that its labels or taints seem to keep away.
// A scheduler may have seen before us that they have changed, and the pod would fail for good.
// It does so once for all pods that have come together: the answer is newer than they are. They
// are judged in one round of the sync loop, which would count as stuck if an API server that does
// not answer were waited for again for each of very many.
func (r *round) rereadNode() bool {
	if r.reread || r.o.Reread == nil {
		return false
	}
	r.reread = true
	ctx, cancel := context.WithTimeout(context.Background(), rereadWithin)
	defer cancel()
	if err := r.o.Reread(ctx); err != nil {
		r.o.Logger.Warn("the node's labels and taints may be old ones", zap.Error(err))
		return false
	}
	return true
}
