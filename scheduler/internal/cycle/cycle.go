package cycle

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/queue"
	"kctl/scheduler/internal/waitingpods"
)

// Queue gives the pods and takes them back.
type Queue interface {
	Pop(ctx context.Context) (*framework.QueuedPodInfo, error)
	Current(uid types.UID) (*core.Pod, bool)
	Left(uid types.UID) <-chan struct{}
	Done(uid types.UID)
	AddUnschedulable(uid types.UID, failure queue.Failure)
	MoveAllToActiveOrBackoffQueue(event framework.ClusterEvent)
}

// Cache holds the nodes and takes assumptions.
type Cache interface {
	Update(snapshot *cache.Snapshot)
	Has(uid types.UID) bool
	Assume(pod *framework.PodInfo, node string) error
	FinishBinding(uid types.UID)
	Forget(uid types.UID) bool
	Bound(uid types.UID) string
	HasNode(name string) bool
}

// Reporter tells people what became of a pod.
type Reporter interface {
	Scheduled(pod *core.Pod, node string)
	// Nominated is for a pod that has room on a node and waits to be bound.
	Nominated(pod *core.Pod, node string)
	// Unscheduled is for an attempt that found no node (err tells why) or
	// failed. nominated is the node on which others make room; empty if none.
	Unscheduled(pod *core.Pod, err error, nominated string)
}

// PodReader reads a pod from the API, for when the answer to a binding got lost.
type PodReader interface {
	Pod(ctx context.Context, namespace, name string) (*core.Pod, error)
}

const (
	// maxBindings bounds the concurrent bindings.
	maxBindings = 64
	// bindTimeout bounds what plugins do before and after a binding, and the wait for
	// one answer to it.
	bindTimeout = 30 * time.Second
	// measureEvery is the time between attempts in which each plugin is measured:
	// measuring takes about as long as the attempt itself.
	measureEvery = 100 * time.Millisecond
	// bindGrace is how long bindings under way may take when the scheduler stops.
	bindGrace = 5 * time.Second
)

// Scheduler runs the cycle.
type Scheduler struct {
	Profiles map[string]*framework.Profile
	Queue    Queue
	Cache    Cache
	Reporter Reporter
	Pods     PodReader
	// Nominator knows on which nodes room is kept for which pods.
	Nominator *nominator.Nominator
	// WaitingPods are those that Permit plugins hold back.
	WaitingPods *waitingpods.Map
	// Extenders may be nil.
	Extenders *extender.Chain
	// Leading says whether this process may bind pods right now; nil means that it always
	// may.
	Leading func() bool
	Clock   clock.Clock
	Logger  *zap.Logger
	Metrics *metrics.Metrics
}

// Run places pods until ctx ends, then waits for the bindings under way and
// returns ctx's error.
func (s *Scheduler) Run(ctx context.Context) error {
	bindCtx, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	measured := newPoints(s.Metrics, s.Clock)
	r := &run{
		Scheduler: s,
		points:    measured,
		placer:    newPlacer(s.Nominator, s.Extenders, measured, s.Logger),
		bindCtx:   bindCtx,
		slots:     make(chan struct{}, maxBindings),
	}
	for {
		pod, err := s.Queue.Pop(ctx)
		if err != nil {
			r.drain(abandon)
			return err
		}
		r.scheduleOne(ctx, pod)
	}
}

// run is the state of one Run.
type run struct {
	*Scheduler
	placer   *placer
	points   *points
	measured time.Time // when an attempt last had each plugin measured
	bindCtx  context.Context
	slots    chan struct{} // one for each Binding that the server is asked for
	// bindings also include the pods that wait for Permit, for a slow PreBind or for an
	// extender to bind them, with a goroutine each. They need no limit of their own: each such pod occupies a place on
	// a node, and there are only so many places.
	bindings sync.WaitGroup
}

// drain waits for the bindings under way; after the grace it has them given up.
func (r *run) drain(abandon context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		r.bindings.Wait()
		close(done)
	}()
	grace := r.Clock.NewTimer(bindGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C():
		abandon()
		<-done
	}
}
