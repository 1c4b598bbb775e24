package kubelet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// faults are what a runtime does wrong in about every other call while there is
// trouble.
type faults struct {
	trouble atomic.Bool
	done    [4]atomic.Int64 // how often, by kind
	told    atomic.Bool     // a sandbox was refused, so there must be an event
}

func (f *faults) call(ctx context.Context, method string, call func() error) error {
	kind := rand.IntN(2 * len(f.done))
	if f.trouble.Load() && method == "RunPodSandbox" && !f.told.Swap(true) {
		kind = 0
	}
	if !f.trouble.Load() || kind >= len(f.done) {
		return call()
	}
	defer f.done[kind].Add(1)
	switch kind {
	case 0:
		return status.Error(codes.Unknown, "the runtime is confused")
	case 1: // done, but not answered
		if err := call(); err != nil {
			return err
		}
		return status.Error(codes.Unavailable, "the answer was lost")
	case 2: // slow
		select {
		case <-time.After(100 * time.Millisecond):
			return call()
		case <-ctx.Done():
		}
	default: // never answered
		<-ctx.Done()
	}
	return status.FromContextError(ctx.Err()).Err()
}

// had says whether each kind happened often enough.
func (f *faults) had(least int64) bool {
	return !slices.ContainsFunc([]int{0, 1, 2, 3}, func(kind int) bool { return f.done[kind].Load() < least })
}

// A runtime that fails, forgets to answer, is slow or silent is reported in
// events, and does no other harm: when it works again, pods run as they should,
// each in one sandbox, and those deleted meanwhile are gone without a trace.
func TestAFaultyRuntime(t *testing.T) {
	if !long() {
		t.Skip("skipped: waits for the kubelet's back-offs; set KCTL_LONG=1")
	}
	f := &faults{}
	b, runtime := newHollowBed(t, func(c *config.Config) { c.RuntimeRequestTimeout = 300 * time.Millisecond },
		func(o *simulated.Options) { o.Fault = f.call })
	const pods = 8
	name := func(i int) string { return fmt.Sprintf("pod-%d", i) }
	b.eventually("somebody to listen to the runtime", func() bool { return runtime.Listeners() == 1 })
	for i := range pods / 2 { // some run already
		b.create(hollowPod(name(i), nil))
		b.waitPhase(name(i), corev1.PodRunning)
	}
	f.trouble.Store(true)
	for i := pods / 2; i < pods; i++ {
		b.create(hollowPod(name(i), nil))
	}
	for i := 0; i < pods; i += 3 {
		b.deleteWithin(name(i), 1)
	}
	b.api.wait("events that tell of it", func() bool {
		var events corev1.EventList
		if err := b.client.Resource(core.Events, "default").List(t.Context(), &events); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e core.Event) bool {
			return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "the runtime is confused")
		})
	})
	b.eventually("trouble of each kind", func() bool { return f.had(3) })
	f.trouble.Store(false)

	for i := range pods {
		if i%3 == 0 {
			b.api.wait(name(i)+" to be gone", func() bool { return b.api.pod(name(i)) == nil })
			continue
		}
		b.api.wait(name(i)+" to be ready", func() bool {
			s := b.api.pod(name(i)).Status.ContainerStatuses
			return len(s) == 1 && s[0].Ready
		})
	}
	b.eventually("one sandbox and one container that runs for each pod", func() bool {
		all, err := b.kubelet.machinery.state.Pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all) == pods-(pods+2)/3 && !slices.ContainsFunc(b.sandboxes(), func(n int) bool { return n != 1 })
	})
	for i := range pods / 2 {
		if pod := b.api.pod(name(i)); pod != nil && restarts(&pod.Status) != 0 {
			t.Errorf("%s, which ran before, was restarted", pod.Name)
		}
	}
}

// A pod that can't be ended, because its network can't be removed or the
// runtime has lost track of a container, says why, and ends when it can.
func TestAPodThatCantBeEnded(t *testing.T) {
	for method, problem := range map[string]string{
		"StopPodSandbox": "failed to destroy network", "RemoveContainer": "cannot delete running task", "RemovePodSandbox": "sandbox not found in store",
	} {
		t.Run(method, func(t *testing.T) {
			var stuck atomic.Bool
			b, _ := newHollowBed(t, nil, func(o *simulated.Options) {
				o.Fault = func(_ context.Context, called string, call func() error) error {
					if called == method && stuck.Load() {
						return status.Error(codes.Unknown, problem)
					}
					return call()
				}
			})
			b.create(hollowPod("web", nil))
			web := b.waitPhase("web", corev1.PodRunning)
			logs := podfiles.LogDirectory(b.config.PodLogsDir, web.Namespace, web.Name, web.UID)
			if err := os.MkdirAll(logs, 0o755); err != nil {
				t.Fatal(err)
			}
			stuck.Store(true)
			b.deleteWithin("web", 1)
			b.waitEvent("web", "FailedKillPod", "error killing pod: ")
			b.waitEvent("web", "FailedKillPod", problem)
			gone := func() { b.api.wait("the pod to be gone", func() bool { return b.api.pod("web") == nil }) }
			if method == "StopPodSandbox" {
				stuck.Store(false)
				gone()
				return
			}
			// Nothing of it runs any more: its object need not wait until the runtime
			// forgets it.
			gone()
			if _, err := os.Stat(logs); !os.IsNotExist(err) {
				t.Errorf("its logs stay: %v", err)
			}
			stuck.Store(false)
			b.eventually("the runtime to have nothing of it", func() bool {
				all, err := b.kubelet.machinery.state.Pods(t.Context())
				return err == nil && len(all) == 0
			})
		})
	}
}

// What one pod left behind and can't be removed keeps no room from others that
// can be made: unused images go all the same.
func TestRoomIsMadeOfWhatThereIs(t *testing.T) {
	var broken atomic.Bool
	b, _ := newHollowBed(t, func(c *config.Config) { c.Images.MinimumAge = 0 }, func(o *simulated.Options) {
		o.Fault = func(_ context.Context, method string, call func() error) error {
			if broken.Load() && method == "ListPodSandbox" {
				return status.Error(codes.Unknown, "the runtime is confused")
			}
			return call()
		}
	})
	b.api.wait("the kubelet to have heard of all pods", b.kubelet.sources.ready.All)
	unused := &runtimeapi.ImageSpec{Image: "registry.example/unused:1"}
	if _, err := b.kubelet.cri.PullImage(t.Context(), unused, nil, nil); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	defer broken.Store(false)
	if err := b.kubelet.evictor.Reclaim(t.Context(), true); err == nil || !strings.Contains(err.Error(), "the runtime is confused") {
		t.Errorf("error %v", err)
	}
	if left, err := b.kubelet.cri.ImageStatus(t.Context(), unused); err != nil || left != nil {
		t.Errorf("%v is left, %v", left, err)
	}
}

// sandboxes are the numbers of ready sandboxes, by pod.
func (b *bed) sandboxes() []int {
	all, err := b.kubelet.cri.ListPodSandbox(b.t.Context(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	of := map[string]int{}
	for _, s := range all {
		if s.GetState() == 0 {
			of[s.GetMetadata().GetUid()]++
		}
	}
	var counts []int
	for _, n := range of {
		counts = append(counts, n)
	}
	return counts
}
