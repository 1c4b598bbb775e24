package leader

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// fakeLeases is the part of the API that a Lease needs: an update with an old
// resourceVersion is a conflict. down makes every request fail.
type fakeLeases struct {
	mu       sync.Mutex
	lease    *core.Lease
	revision int
	down     bool
	hang     bool
	reads    int
}

var (
	errDown     = errors.New("connection refused")
	errNotFound = apierrors.NewNotFound(core.Leases.GVR().GroupResource(), "kube-scheduler")
)

func (f *fakeLeases) Get(ctx context.Context) (*core.Lease, error) {
	f.mu.Lock()
	f.reads++
	down, hang, lease := f.down, f.hang, f.lease.DeepCopy()
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if down {
		return nil, errDown
	}
	if lease == nil {
		return nil, errNotFound
	}
	return lease, nil
}

func (f *fakeLeases) Create(_ context.Context, lease *core.Lease) (*core.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, errDown
	}
	if f.lease != nil {
		return nil, apierrors.NewAlreadyExists(core.Leases.GVR().GroupResource(), lease.Name)
	}
	return f.store(lease), nil
}

func (f *fakeLeases) Update(ctx context.Context, lease *core.Lease) (*core.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.hang:
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return nil, ctx.Err()
	case f.down:
		return nil, errDown
	case f.lease == nil:
		return nil, errNotFound
	}
	if lease.ResourceVersion != f.lease.ResourceVersion {
		return nil, apierrors.NewConflict(core.Leases.GVR().GroupResource(), lease.Name, errors.New("stale"))
	}
	return f.store(lease), nil
}

func (f *fakeLeases) store(lease *core.Lease) *core.Lease {
	f.revision++
	f.lease = lease.DeepCopy()
	f.lease.ResourceVersion = strconv.Itoa(f.revision)
	return f.lease.DeepCopy()
}

func (f *fakeLeases) set(change func(f *fakeLeases)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeLeases) current() *core.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lease.DeepCopy()
}

func elector(t *testing.T, identity string, leases Leases) *Elector {
	t.Helper()
	e, err := New(Config{Namespace: "kube-system", Name: "kube-scheduler", Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	e.leases = leases
	return e
}

// candidate runs an elector and records when it began and stopped leading.
type candidate struct {
	*Elector
	stop   context.CancelFunc
	result chan error
}

func start(t *testing.T, identity string, leases Leases, changes ...func(*Config)) *candidate {
	ctx, cancel := context.WithCancel(t.Context())
	c := &candidate{Elector: elector(t, identity, leases), stop: cancel, result: make(chan error, 1)}
	for _, change := range changes {
		change(&c.config)
	}
	go func() {
		c.result <- c.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return c
}

func TestFirstLeadsSecondWaitsAndTakesOverOnRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		first := start(t, "a", store)
		synctest.Wait()
		second := start(t, "b", store)
		time.Sleep(time.Hour)
		if !first.Leading() || second.Leading() {
			t.Fatalf("after an hour: first leads %v, second leads %v", first.Leading(), second.Leading())
		}
		if second.Holder() != "a" {
			t.Errorf("the second sees %q lead", second.Holder())
		}
		first.stop()
		if err := <-first.result; !errors.Is(err, context.Canceled) {
			t.Errorf("first ended with %v", err)
		}
		// The lease was released, so the second needs one retry, not the lease's
		// duration.
		time.Sleep(DefaultRetryPeriod*22/10 + time.Millisecond)
		if !second.Leading() {
			t.Error("the second does not lead a retry period after the release")
		}
		if got := *store.current().Spec.LeaseTransitions; got < 1 {
			t.Errorf("leaseTransitions is %d", got)
		}
		second.stop()
		<-second.result
	})
}

func TestALeaderRenewsWithoutReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		c := start(t, "a", store)
		renew := func(wantReads int, when string) {
			t.Helper()
			time.Sleep(time.Minute)
			store.set(func(f *fakeLeases) {
				if f.reads != wantReads {
					t.Errorf("%s: %d reads, want %d", when, f.reads, wantReads)
				}
				if f.lease == nil || time.Since(f.lease.Spec.RenewTime.Time) > DefaultRetryPeriod {
					t.Errorf("%s: not renewed: %v", when, f.lease)
				}
			})
			if !c.Leading() {
				t.Errorf("%s: it does not lead", when)
			}
		}
		renew(1, "from the start on")
		store.set(func(f *fakeLeases) { f.store(f.lease) })
		renew(2, "after another wrote to the lease")
		store.set(func(f *fakeLeases) { f.lease = nil })
		renew(3, "after the lease was deleted")
		c.stop()
		<-c.result
	})
}

func TestSecondTakesOverWhenTheLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		dead := elector(t, "dead", store)
		if ours, err := dead.tryAcquireOrRenew(t.Context()); !ours || err != nil {
			t.Fatal(ours, err)
		}
		began := time.Now()
		heir := start(t, "heir", store)
		time.Sleep(DefaultLeaseDuration - time.Millisecond)
		if heir.Leading() {
			t.Fatalf("took over after %s, before the lease ran out", time.Since(began))
		}
		time.Sleep(DefaultRetryPeriod * 3)
		if !heir.Leading() {
			t.Error("did not take over after the lease ran out")
		}
		heir.stop()
		<-heir.result
	})
}

func TestLeaderStopsLeadingWhenItCannotRenew(t *testing.T) {
	for name, fault := range map[string]func(*fakeLeases){
		"refused": func(f *fakeLeases) { f.down = true },
		"hanging": func(f *fakeLeases) { f.hang = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fakeLeases{}
				c := start(t, "a", store)
				time.Sleep(time.Minute)
				store.set(fault)
				failed := time.Now()
				err := <-c.result
				if !errors.Is(err, ErrLost) {
					t.Fatalf("ended with %v, want ErrLost", err)
				}
				if took := time.Since(failed); took >= DefaultLeaseDuration {
					t.Errorf("led on for %s: another may lead by then", took)
				}
				if c.Leading() {
					t.Error("still says it leads")
				}
			})
		})
	}
}

// jumped is the clock of a process that was suspended: the time has passed, and
// none of its timers has fired yet.
type jumped struct {
	clock.Clock
	by atomic.Int64
}

func (j *jumped) Now() time.Time { return j.Clock.Now().Add(time.Duration(j.by.Load())) }

func (j *jumped) Since(t time.Time) time.Duration { return j.Now().Sub(t) }

func TestALeaderThatWasStoppedLeadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := &jumped{Clock: clock.RealClock{}}
		c := start(t, "a", &fakeLeases{}, func(config *Config) { config.Clock = stopped })
		synctest.Wait()
		if !c.Leading() {
			t.Fatal("nobody leads")
		}
		stopped.by.Store(int64(DefaultRenewDeadline))
		if c.Leading() {
			t.Error("it leads, though another may by now")
		}
		c.stop()
		<-c.result
	})
}

func TestLeaderStopsWhenTheLeaseWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		c := start(t, "a", store)
		synctest.Wait()
		store.set(func(f *fakeLeases) {
			thief := "thief"
			taken := f.lease.DeepCopy()
			taken.Spec.HolderIdentity = &thief
			f.store(taken)
		})
		if err := <-c.result; !errors.Is(err, ErrLost) {
			t.Errorf("ended with %v, want ErrLost", err)
		}
		if ptr.Deref(store.current().Spec.HolderIdentity, "") != "thief" {
			t.Error("released a lease that was not its own")
		}
	})
}

func TestAShortOutageIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		c := start(t, "a", store)
		time.Sleep(time.Minute)
		store.set(func(f *fakeLeases) { f.down = true })
		time.Sleep(5 * time.Second)
		store.set(func(f *fakeLeases) { f.down = false })
		time.Sleep(time.Minute)
		if !c.Leading() {
			t.Error("lost the lease in an outage shorter than the renew deadline")
		}
		c.stop()
		<-c.result
		if ptr.Deref(store.current().Spec.HolderIdentity, "") != "" {
			t.Errorf("not released: held by %q", ptr.Deref(store.current().Spec.HolderIdentity, ""))
		}
	})
}

func TestLeadersErrorReleasesAndReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeLeases{}
		e := elector(t, "a", store)
		broken := errors.New("broken")
		err := e.Run(t.Context(), func(context.Context) error { return broken })
		if !errors.Is(err, broken) || ptr.Deref(store.current().Spec.HolderIdentity, "") != "" {
			t.Errorf("err %v, holder %q", err, ptr.Deref(store.current().Spec.HolderIdentity, ""))
		}
	})
}

func TestBadTimesAreRefused(t *testing.T) {
	for _, c := range []Config{
		{},
		{LeaseDuration: time.Second, RenewDeadline: time.Second},
		{RenewDeadline: time.Second, RetryPeriod: time.Second},
		{LeaseDuration: 500 * time.Millisecond, RenewDeadline: 400 * time.Millisecond, RetryPeriod: 100 * time.Millisecond},
	} {
		if c.LeaseDuration != 0 || c.RenewDeadline != 0 {
			c.Identity, c.Namespace, c.Name = "a", "b", "c"
		}
		if _, err := New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}
