package nodestats

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/server"
	"kctl/proto/core"
)

// While the runtime does not answer, however many ask, one question to it is open; who has
// waited long enough gets what was measured before, and one who leaves takes nothing from
// the others.
func TestUsagesWhileTheRuntimeIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers chan error // what the runtime answers with; nil while it does so at once
		var asked atomic.Int64
		u := &Usages{every: time.Minute, clock: clock.RealClock{}, pods: func() []*core.Pod { return nil }}
		u.measure = func(ctx context.Context, _ []*core.Pod, _ bool) (map[types.UID]*eviction.Usage, error) {
			n := asked.Add(1)
			if answers != nil {
				if err := <-answers; err != nil || ctx.Err() != nil {
					return nil, errors.Join(err, ctx.Err())
				}
			}
			return map[types.UID]*eviction.Usage{"uid": {Disk: n}}, nil
		}
		disk := func(all map[types.UID]server.PodUsage) uint64 { return all["uid"].Disk }
		if got := disk(u.Get(t.Context())); got != 1 {
			t.Fatalf("first measurement: %d", got)
		}
		time.Sleep(time.Minute)
		answers = make(chan error)
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if got := disk(u.Get(ctx)); got != 1 {
				t.Errorf("who gives up got %d", got)
			}
			cancel()
		}
		if len(u.Logs()) != 1 || asked.Load() != 2 {
			t.Errorf("the runtime was asked %d times", asked.Load())
		}
		answers <- errors.New("the runtime is confused")
		synctest.Wait()
		waiting := make(chan uint64)
		for range 2 {
			go func() { waiting <- disk(u.Get(t.Context())) }()
		}
		synctest.Wait()
		answers <- nil
		if first, second := <-waiting, <-waiting; first != 3 || second != 3 || asked.Load() != 3 {
			t.Errorf("who waits gets %d and %d of %d", first, second, asked.Load())
		}
	})
}
