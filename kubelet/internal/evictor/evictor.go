package evictor

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/podkiller"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// Collector removes what containers that have ended left.
type Collector interface {
	Reclaim(ctx context.Context) error
	CollectPod(ctx context.Context, uid types.UID) error
}

// Images removes the images that nobody uses.
type Images interface {
	FreeAll(ctx context.Context) error
}

// Events writes events about pods.
type Events interface {
	Annotated(obj runtime.Object, annotations map[string]string, eventType, reason, message string)
}

// Options are what an Evictor calls.
type Options struct {
	Killer    *podkiller.Killer
	Collector Collector
	Images    Images
	Events    Events
	Metrics   *metrics.Metrics
	Clock     clock.Clock
	Logger    *zap.Logger
}

// Evictor evicts pods.
type Evictor struct{ o Options }

// New returns an Evictor.
func New(o Options) *Evictor { return &Evictor{o} }

// patience is how long the node waits for an evicted pod to end and to be cleaned up after, before it looks
// for the next one: upstream's, which gives the runtime half as long again as the pod, and ten seconds at least.
func patience(grace int64) time.Duration {
	const cleanup = 30 * time.Second
	return max(10*time.Second, time.Duration(grace)*time.Second*3/2) + cleanup
}

// runtimePatience bounds what the runtime is asked to remove at once, to the time that a single call may take: with
// a runtime that is slow on a full disk, the node would be blind meanwhile, to its memory, too. The rest waits for
// the next look.
const runtimePatience = 2 * time.Minute

// Reclaim removes what ended containers left, and then unused images. If
// some of the former can't be removed, the images are removed all the same;
// otherwise pods would be evicted. They stay if they are on another disk.
func (e *Evictor) Reclaim(ctx context.Context, images bool) error {
	err := patiently(ctx, e.o.Collector.Reclaim)
	if images {
		err = errors.Join(err, patiently(ctx, e.o.Images.FreeAll))
	}
	return err
}

func patiently(ctx context.Context, remove func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	return remove(ctx)
}

// Evict ends a pod, waits for its end for a while, and removes what its containers
// have written: otherwise the node would still be short, and evict others.
func (e *Evictor) Evict(ctx context.Context, pod *core.Pod, v eviction.Decision) {
	e.o.Logger.Warn("pod evicted", daemon.PodFields(pod), zap.String("message", v.Message))
	e.o.Events.Annotated(pod, v.Offenders.Annotations(), corev1.EventTypeWarning, podkiller.Evicted, v.Message)
	e.o.Metrics.Evictions.WithLabelValues(v.Signal).Inc()
	done := make(chan struct{})
	end := podkiller.Termination{Reason: podkiller.Evicted, Message: v.Message, Disrupted: v.Message, Grace: &v.Grace, Done: done}
	if v.Limit {
		end.Disrupted = ""
	}
	e.o.Killer.Terminate(pod, end)
	timer := e.o.Clock.NewTimer(patience(v.Grace))
	defer timer.Stop()
	select {
	case <-done:
		err := patiently(ctx, func(ctx context.Context) error { return e.o.Collector.CollectPod(ctx, pod.UID) })
		if err != nil && ctx.Err() == nil {
			e.o.Logger.Warn("not everything that an evicted pod left behind could be removed", daemon.PodFields(pod), zap.Error(err))
		}
	case <-timer.C():
	case <-ctx.Done():
	}
}
