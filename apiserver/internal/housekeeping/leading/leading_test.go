package leading

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/proto/core"
)

// server is an API server's housekeeper whose loops do nothing.
type server struct {
	keeping atomic.Bool  // whether its loops run
	terms   atomic.Int32 // in which loops for pods were made
	stop    context.CancelFunc
	quit    context.CancelFunc
	ended   chan error
}

// start runs a housekeeper with these leases until the test ends.
func start(t *testing.T, leases *registrytest.Store, elect bool) *server {
	flags := config.Defaults()
	flags.Controllers, flags.Operation.LeaderElect.Enabled = nil, elect
	s := &server{ended: make(chan error, 1)}
	h, err := New(Options{
		Flags: flags, Leases: leases, Loops: housekeeping.Dependencies{Clock: clock.RealClock{}, Logger: zap.NewNop()},
		Pods: func() *informer.Informer[informer.Pod] {
			s.terms.Add(1)
			return informer.New(registrytest.New(core.Pods), informer.PodOf, informer.Options[informer.Pod]{}, clock.RealClock{}, zap.NewNop())
		},
		Others: []housekeeping.Loop{func(ctx context.Context) error {
			s.keeping.Store(true)
			defer s.keeping.Store(false)
			<-ctx.Done()
			return ctx.Err()
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, quit := context.WithCancel(t.Context())
	stopping, stop := context.WithCancel(ctx)
	s.quit, s.stop = quit, stop
	go func() { s.ended <- h.Run(ctx, stopping) }()
	return s
}

// pass lets enough time pass for a lease that nobody renews to be taken over.
func pass() {
	time.Sleep(2 * config.Defaults().Operation.LeaderElect.LeaseDuration)
	synctest.Wait()
}

// Only one of two servers runs the loops. While it drains, the other one
// already does. A server that lost the lease, and was not told to stop, is a
// candidate again.
func TestOneKeepsHouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := registrytest.New(core.Leases)
		a := start(t, leases, true)
		synctest.Wait()
		b := start(t, leases, true)
		pass()
		if !a.keeping.Load() || b.keeping.Load() {
			t.Fatalf("keeping house: the first %t, the second %t", a.keeping.Load(), b.keeping.Load())
		}
		a.stop()
		pass()
		if a.keeping.Load() || !b.keeping.Load() {
			t.Errorf("when the first drains: the first %t, the second %t", a.keeping.Load(), b.keeping.Load())
		}
		select {
		case err := <-a.ended:
			if err != nil {
				t.Errorf("the first ended with %v", err)
			}
		default:
			t.Error("the first is a candidate while it drains")
		}
	})
}

// What was learned in one term is not used in the next: pods are read again.
func TestALaterTermBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := registrytest.New(core.Leases)
		s := start(t, leases, true)
		pass()
		if s.terms.Load() != 0 || !s.keeping.Load() {
			t.Fatalf("in the first term: %d times pods of its own, keeping house %t", s.terms.Load(), s.keeping.Load())
		}
		elect := config.Defaults().Operation.LeaderElect
		lease, ok := leases.Peek(elect.Namespace, elect.Name).(*core.Lease)
		if !ok {
			t.Fatal("there is no lease")
		}
		other := "another server"
		lease.Spec.HolderIdentity = &other
		leases.Put(lease)
		time.Sleep(elect.RetryPeriod)
		synctest.Wait()
		if s.keeping.Load() {
			t.Error("house is kept by a server that has lost the lease")
		}
		pass() // the other one does not renew it
		if !s.keeping.Load() || s.terms.Load() != 1 {
			t.Errorf("in the second term: %d times pods of its own, keeping house %t", s.terms.Load(), s.keeping.Load())
		}
	})
}

// Without an election every server runs the loops, even while it drains: nobody
// else does.
func TestWithoutElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, registrytest.New(core.Leases), false)
		s.stop()
		synctest.Wait()
		if !s.keeping.Load() {
			t.Error("no server runs the loops")
		}
		s.quit()
		<-s.ended
	})
}
