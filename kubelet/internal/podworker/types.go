package podworker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// UpdateType says why a pod is handed to its worker.
type UpdateType int

const (
	// Create: the pod is new to the kubelet.
	Create UpdateType = iota
	// Change: what is desired of the pod changed.
	Change
	// Sync: the desired state is the same; look at the pod again.
	Sync
	// Kill: the pod must end.
	Kill
)

var updateTypeNames = [...]string{"create", "update", "sync", "kill"}

func (t UpdateType) String() string { return updateTypeNames[t] }

// Orphan is a pod that the runtime has and no source knows.
type Orphan struct {
	UID       types.UID
	Namespace string
	Name      string
}

// KillOptions refine the end of a pod.
type KillOptions struct {
	// GracePeriod overrides the pod's grace period, in seconds.
	GracePeriod *int64
	// Removed says that the pod's source no longer has it, so that a later pod
	// with the same UID is a new one.
	Removed bool
	// Status changes the status that the pod ends with; it may be nil. The last one that
	// is asked for counts.
	Status func(*core.PodStatus)
	// Done is closed when the pod is terminated; it may be nil.
	Done chan<- struct{}
}

// Update hands a pod to its worker. Exactly one of Pod and Running is set;
// Running only goes with Kill.
type Update struct {
	Type      UpdateType
	Pod       *core.Pod
	MirrorPod *core.Pod
	Running   *Orphan
	Kill      *KillOptions
	// Start is when the reason for this update was seen, for metrics.
	Start time.Time
}

func (u *Update) uid() types.UID {
	if u.Pod != nil {
		return u.Pod.UID
	}
	return u.Running.UID
}

func (u *Update) fullName() types.NamespacedName {
	if u.Pod != nil {
		return types.NamespacedName{Namespace: u.Pod.Namespace, Name: u.Pod.Name}
	}
	return types.NamespacedName{Namespace: u.Running.Namespace, Name: u.Running.Name}
}

// Job is one step that a worker asks the Syncer to do.
type Job struct {
	Update
	Phase Phase
	// First says that the pod's worker never synced it before.
	First bool
	// GracePeriod is how long containers may take to end, in seconds; at least
	// one. It is set from Terminating on.
	GracePeriod int64
	// Removed says that the pod's source no longer has it. It may have another pod
	// with that UID by now, which waits for this one's end.
	Removed bool
	// Status changes the status that the pod ends with; nil if no kill asked for that.
	Status func(*core.PodStatus)
}

// Outcome is what a sync found, if it did not fail.
type Outcome struct {
	// Terminal says that the pod has ended by itself.
	Terminal bool
	// After asks for the next sync; zero stands for the usual interval.
	After time.Duration
}

// Syncer does the steps of a pod's life. Each of them may be called again and
// must go on from what it finds. The context ends when the step has become
// pointless: termination was requested during SyncPod, or the grace period of a
// termination became shorter.
type Syncer interface {
	// SyncPod brings the pod closer to what is desired.
	SyncPod(ctx context.Context, job Job) (Outcome, error)
	// SyncTerminatingPod returns nil once no container of the pod runs.
	SyncTerminatingPod(ctx context.Context, job Job) error
	// SyncTerminatingRuntimePod does the same for a pod that only the runtime knows.
	SyncTerminatingRuntimePod(ctx context.Context, pod Orphan) error
	// SyncTerminatedPod releases everything that the pod held on the node.
	SyncTerminatedPod(ctx context.Context, job Job) error
}
