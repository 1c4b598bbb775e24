package evictor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
)

// node is what an Evictor calls; it notes what it is called for.
type node struct {
	takes    time.Duration // until a pod has ended
	hangs    bool          // nothing can be removed
	reclaims error

	done      []string
	killed    *podworker.KillOptions
	event     string
	annotated map[string]string
}

func (n *node) Update(u podworker.Update) {
	n.killed = u.Kill
	n.done = append(n.done, "end "+u.Pod.Name)
	time.AfterFunc(n.takes, func() { close(u.Kill.Done) })
}

func (n *node) Of(*core.Pod) *core.Pod { return nil }

func (n *node) Reclaim(ctx context.Context) error {
	n.done = append(n.done, "reclaim containers")
	if n.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return n.reclaims
}

func (n *node) CollectPod(_ context.Context, uid types.UID) error {
	n.done = append(n.done, "collect "+string(uid))
	return nil
}

func (n *node) FreeAll(context.Context) error {
	n.done = append(n.done, "free images")
	return nil
}

func (n *node) Annotated(_ runtime.Object, annotations map[string]string, eventType, reason, message string) {
	n.event, n.annotated = eventType+" "+reason+": "+message, annotations
}

func newEvictor(n *node) (*Evictor, *metrics.Metrics) {
	measured := metrics.New(prometheus.NewRegistry())
	return New(Options{
		Killer:    podkiller.New(n, n, clock.RealClock{}),
		Collector: n,
		Images:    n,
		Events:    n,
		Metrics:   measured,
		Clock:     clock.RealClock{},
		Logger:    zap.NewNop(),
	}), measured
}

var pod = &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid"}}

// An evicted pod ends as the decision says, everybody is told, and what it has written is removed.
func TestEvictedPodsEndAndLeaveNothing(t *testing.T) {
	n := &node{}
	e, measured := newEvictor(n)
	e.Evict(t.Context(), pod, eviction.Decision{
		Grace: 7, Signal: "memory.available", Message: "low on memory", Offenders: eviction.Offenders{Starved: "memory"},
	})
	if !slices.Equal(n.done, []string{"end web", "collect uid"}) {
		t.Errorf("done: %q", n.done)
	}
	if n.killed.GracePeriod == nil || *n.killed.GracePeriod != 7 {
		t.Errorf("grace period %v", n.killed.GracePeriod)
	}
	if n.event != "Warning Evicted: low on memory" || n.annotated["starved_resource"] != "memory" {
		t.Errorf("event %q, %v", n.event, n.annotated)
	}
	if got := testutil.ToFloat64(measured.Evictions.WithLabelValues("memory.available")); got != 1 {
		t.Errorf("counted %v times", got)
	}
}

// A pod that the node has no room for would end like this nowhere else, and is disrupted; one that
// broke a limit of its own is not.
func TestOnlyPodsThatTheNodeIsShortForAreDisrupted(t *testing.T) {
	for limit, want := range map[bool]map[corev1.PodConditionType]string{
		false: {corev1.DisruptionTarget: "why"},
		true:  {},
	} {
		n := &node{}
		e, _ := newEvictor(n)
		e.Evict(t.Context(), pod, eviction.Decision{Message: "why", Limit: limit})
		var status core.PodStatus
		n.killed.Status(&status)
		got := map[corev1.PodConditionType]string{}
		for _, c := range status.Conditions {
			got[c.Type] = c.Message
		}
		if status.Phase != corev1.PodFailed || status.Reason != "Evicted" || status.Message != "why" || !maps.Equal(got, want) {
			t.Errorf("for a limit of its own: %t: %s %s %q, conditions %v", limit, status.Phase, status.Reason, status.Message, got)
		}
	}
}

// While a pod has its grace period, its neighbours are safe; a pod that does not end delays nobody
// forever, and what it writes is left, since it still writes.
func TestHowLongAnEvictedPodIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		grace                  int64
		takes, kubelet, waited time.Duration
		collected              bool
	}{
		{grace: 1, takes: 2 * time.Second, kubelet: time.Hour, waited: 2 * time.Second, collected: true},
		{grace: 1, takes: time.Hour, kubelet: time.Hour, waited: 40 * time.Second},
		{grace: 600, takes: 10 * time.Minute, kubelet: time.Hour, waited: 10 * time.Minute, collected: true},
		{grace: 600, takes: time.Hour, kubelet: time.Hour, waited: 15*time.Minute + 30*time.Second},
		{grace: 1, takes: time.Hour, kubelet: time.Second, waited: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.kubelet)
			defer cancel()
			n, began := &node{takes: c.takes}, time.Now()
			e, _ := newEvictor(n)
			e.Evict(ctx, pod, eviction.Decision{Grace: c.grace})
			collected := slices.Contains(n.done, "collect uid")
			if waited := time.Since(began); waited != c.waited || collected != c.collected {
				t.Errorf("%+v: waited for %v, collected: %t", c, waited, collected)
			}
		})
	}
}

// Images are removed although ended containers can't be, unless they are on another disk.
func TestReclaim(t *testing.T) {
	stays := errors.New("a container stays")
	for images, want := range map[bool][]string{
		true:  {"reclaim containers", "free images"},
		false: {"reclaim containers"},
	} {
		n := &node{reclaims: stays}
		e, _ := newEvictor(n)
		if err := e.Reclaim(t.Context(), images); !errors.Is(err, stays) {
			t.Errorf("error %v", err)
		}
		if !slices.Equal(n.done, want) {
			t.Errorf("images on that disk: %t: %q", images, n.done)
		}
	}
}

// A runtime that removes nothing must not keep the node from looking at its memory.
func TestReclaimEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		e, _ := newEvictor(&node{hangs: true})
		err := e.Reclaim(t.Context(), true)
		if waited := time.Since(began); waited != runtimePatience || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v, want an error after %v", err, waited, runtimePatience)
		}
	})
}
