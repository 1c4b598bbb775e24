package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Upstream's times.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// retryJitter spreads the attempts of those that wait for the lease.
const retryJitter = 1.2

// ErrLost is what Run returns when the lease could not be renewed in time.
var ErrLost = errors.New("leader election lost")

// Config of an Elector. Zero times mean the defaults.
type Config struct {
	Client *rest.Client
	// Leases, if not nil, keeps the Lease instead of the API that Client reaches.
	Leases          Leases
	Namespace, Name string // of the Lease
	// Identity is this process's own; NewIdentity makes one.
	Identity string

	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration

	Clock  clock.Clock // the real one
	Logger *zap.Logger // none
}

// Leases reads and writes the one Lease. Update fails with a conflict if the
// Lease is not of the stored version.
type Leases interface {
	Get(ctx context.Context) (*core.Lease, error)
	Create(ctx context.Context, lease *core.Lease) (*core.Lease, error)
	Update(ctx context.Context, lease *core.Lease) (*core.Lease, error)
}

// Elector takes part in one election.
type Elector struct {
	config  Config
	leases  Leases
	leading atomic.Bool
	holder  atomic.Value // string
	renewed atomic.Value // time.Time: when the request that got us the lease began

	// The Lease as last seen; owned by Run.
	observed   *core.Lease
	observedAt time.Time
}

// New returns an Elector; Run takes part.
func New(config Config) (*Elector, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	config.LeaseDuration = cmp.Or(config.LeaseDuration, DefaultLeaseDuration)
	config.RenewDeadline = cmp.Or(config.RenewDeadline, DefaultRenewDeadline)
	config.RetryPeriod = cmp.Or(config.RetryPeriod, DefaultRetryPeriod)
	if config.Identity == "" || config.Namespace == "" || config.Name == "" {
		return nil, errors.New("leader election: identity, lease namespace and lease name are required")
	}
	if err := CheckTimes(config.LeaseDuration, config.RenewDeadline, config.RetryPeriod); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e := &Elector{config: config, leases: config.Leases}
	if e.leases == nil && config.Client != nil {
		e.leases = apiLeases{config.Client.Resource(core.Leases, config.Namespace), config.Name}
	}
	e.holder.Store("")
	return e, nil
}

// CheckTimes returns an error if no election can work with these times. It begins
// with the field of a LeaderElectionConfiguration that it is about.
func CheckTimes(leaseDuration, renewDeadline, retryPeriod time.Duration) error {
	switch {
	case retryPeriod <= 0:
		return fmt.Errorf("retryPeriod: %s is not positive", retryPeriod)
	case float64(renewDeadline) <= retryJitter*float64(retryPeriod):
		return fmt.Errorf("renewDeadline: %s must be longer than %.1f times the retryPeriod, %s", renewDeadline, retryJitter, retryPeriod)
	case leaseDuration <= renewDeadline:
		return fmt.Errorf("leaseDuration: %s must be longer than the renewDeadline, %s", leaseDuration, renewDeadline)
	case leaseDuration < time.Second:
		return fmt.Errorf("leaseDuration: %s is less than a second", leaseDuration)
	}
	return nil
}

// Leading reports whether this process leads, by the clock: a process that was
// suspended for a while, and has not noticed yet, no longer leads, and another
// one may. Ask right before doing what two must not do at once.
func (e *Elector) Leading() bool {
	return e.leading.Load() && e.config.Clock.Since(e.lastRenewed()) < e.config.RenewDeadline
}

func (e *Elector) lastRenewed() time.Time { return e.renewed.Load().(time.Time) }

// Holder is the identity that was last seen to lead; "" for nobody.
func (e *Elector) Holder() string { return e.holder.Load().(string) }

// Run waits until this process leads, and calls lead with a context that ends
// when it no longer may. It returns when lead has returned: lead's error,
// ErrLost if the lease could not be renewed, or ctx's error. On the way out it
// releases the lease, so that the next one need not wait for it to run out.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	e.leading.Store(true)
	e.config.Logger.Info("leading", zap.String("lease", e.leaseName()), zap.String("identity", e.config.Identity))
	leadCtx, stop := context.WithCancel(ctx)
	defer stop()
	finished := make(chan error, 1)
	go func() { finished <- lead(leadCtx) }()
	renewed := make(chan error, 1)
	go func() { renewed <- e.renew(leadCtx) }()

	var err error
	select {
	case err = <-finished:
		stop()
		<-renewed
	case lost := <-renewed:
		e.leading.Store(false)
		stop()
		err = <-finished
		if lost != nil {
			return lost
		}
	}
	e.leading.Store(false)
	e.release(ctx)
	return err
}

func (e *Elector) leaseName() string { return e.config.Namespace + "/" + e.config.Name }

// acquire tries until the lease is ours, or ctx ends.
func (e *Elector) acquire(ctx context.Context) error {
	wait := backoff.Policy{Initial: e.config.RetryPeriod, Max: e.config.RetryPeriod, Jitter: retryJitter}
	warned := false
	for {
		ours, err := e.tryAcquireOrRenew(ctx)
		switch {
		case ours:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !apierrors.IsConflict(err) && !warned:
			e.config.Logger.Warn("can't acquire the lease yet, will keep trying", zap.String("lease", e.leaseName()), zap.Error(err))
			warned = true
		}
		if err := backoff.Sleep(ctx, e.config.Clock, wait.Delay(1)); err != nil {
			return err
		}
	}
}

// renew keeps the lease until ctx ends (nil) or it is lost (ErrLost).
func (e *Elector) renew(ctx context.Context) error {
	for {
		if backoff.Sleep(ctx, e.config.Clock, e.config.RetryPeriod) != nil {
			return nil
		}
		ours, err := e.tryWithTimeout(ctx, e.config.RenewDeadline-e.config.Clock.Since(e.lastRenewed()))
		switch {
		case ctx.Err() != nil:
			return nil
		case ours:
			continue
		case err == nil:
			return fmt.Errorf("%w: %s is held by %s", ErrLost, e.leaseName(), e.Holder())
		case e.config.Clock.Since(e.lastRenewed()) >= e.config.RenewDeadline:
			return fmt.Errorf("%w: %s could not be renewed for %s: %w", ErrLost, e.leaseName(), e.config.RenewDeadline, err)
		}
	}
}

// tryWithTimeout is tryAcquireOrRenew with a time limit: a request that hangs must not outlast the
// deadline.
func (e *Elector) tryWithTimeout(ctx context.Context, d time.Duration) (ours bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if backoff.Sleep(ctx, e.config.Clock, d) == nil {
			cancel()
		}
	}()
	return e.tryAcquireOrRenew(ctx)
}

// tryAcquireOrRenew takes or renews the lease once. ours is false without an error where
// another process holds it.
func (e *Elector) tryAcquireOrRenew(ctx context.Context) (ours bool, err error) {
	began := e.config.Clock.Now()
	defer func() {
		if ours {
			e.renewed.Store(began)
		}
	}()
	if e.observed != nil && e.Holder() == e.config.Identity {
		// Its version tells the API whether the lease is still as we wrote it. If not,
		// or if it is gone, we have to read it.
		if updated, err := e.leases.Update(ctx, e.newLease(e.observed)); err == nil {
			e.observe(updated)
			return true, nil
		}
	}
	current, err := e.leases.Get(ctx)
	if apierrors.IsNotFound(err) {
		created, err := e.leases.Create(ctx, e.newLease(nil))
		if err != nil {
			return false, fmt.Errorf("create lease %s: %w", e.leaseName(), err)
		}
		e.observe(created)
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read lease %s: %w", e.leaseName(), err)
	}
	e.observe(current)
	holder := e.Holder()
	if holder != "" && holder != e.config.Identity && !e.hasExpired() && !hasEnded(holder, e.config.Identity) {
		return false, nil
	}
	updated, err := e.leases.Update(ctx, e.newLease(current))
	if err != nil {
		return false, fmt.Errorf("write lease %s: %w", e.leaseName(), err)
	}
	e.observe(updated)
	return true, nil
}

// observe notes the Lease; the time it runs from is when it was first seen in
// its present form.
func (e *Elector) observe(lease *core.Lease) {
	if e.observed == nil || e.observed.ResourceVersion != lease.ResourceVersion {
		e.observed, e.observedAt = lease, e.config.Clock.Now()
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if old := e.holder.Swap(holder); old != holder && holder != e.config.Identity && holder != "" {
		e.config.Logger.Info("another leads", zap.String("lease", e.leaseName()), zap.String("holder", holder))
	}
}

// hasExpired reports whether the holder has not renewed for the duration that it
// promised itself.
func (e *Elector) hasExpired() bool {
	duration := e.config.LeaseDuration
	if s := e.observed.Spec.LeaseDurationSeconds; s != nil {
		duration = time.Duration(*s) * time.Second
	}
	return !e.observedAt.Add(duration).After(e.config.Clock.Now())
}

// newLease returns the Lease with us as its holder.
func (e *Elector) newLease(current *core.Lease) *core.Lease {
	now := metav1.NewMicroTime(e.config.Clock.Now())
	seconds := int32(e.config.LeaseDuration / time.Second)
	transitions := int32(0)
	lease := &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.config.Namespace, Name: e.config.Name}}
	acquired := now
	if current != nil {
		lease = current.DeepCopy()
		transitions = ptr.Deref(current.Spec.LeaseTransitions, 0)
		if ptr.Deref(current.Spec.HolderIdentity, "") != e.config.Identity {
			transitions++
		} else if current.Spec.AcquireTime != nil {
			acquired = *current.Spec.AcquireTime
		}
	}
	lease.APIVersion, lease.Kind = core.Leases.GVK().ToAPIVersionAndKind()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &e.config.Identity, &seconds
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &acquired, &now
	lease.Spec.LeaseTransitions = &transitions
	return lease
}

// releaseTimeout bounds the last request of a process that is going.
const releaseTimeout = 2 * time.Second

// release gives the lease back; a failure costs the next leader only time.
func (e *Elector) release(ctx context.Context) {
	if e.Holder() != e.config.Identity {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	lease := e.newLease(e.observed)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	if _, err := e.leases.Update(ctx, lease); err != nil {
		e.config.Logger.Info("lease not released, it will run out", zap.String("lease", e.leaseName()), zap.Error(err))
		return
	}
	e.holder.Store("")
}
