package leading

import (
	"context"
	"fmt"
	"os"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/proto/leader"
)

// Options are what a Housekeeper is built from.
type Options struct {
	Flags *config.Options
	// Leases are the store of the election's Lease.
	Leases registry.Resource
	// Loops are the options of the housekeeping loops, for the first term.
	Loops housekeeping.Dependencies
	// Pods makes a replacement for Loops.Pods in later terms.
	Pods func() *informer.Informer[informer.Pod]
	// Others are loops without state, which serve every term.
	Others []housekeeping.Loop
}

// Housekeeper runs the housekeeping loops.
type Housekeeper struct {
	o         Options
	firstTerm []housekeeping.Loop // made by New, which says what is wrong with them
}

// New makes the loops of the first term.
func New(o Options) (*Housekeeper, error) {
	loops, err := housekeeping.New(o.Loops, o.Flags.Controller)
	if err != nil {
		return nil, err
	}
	return &Housekeeper{o: o, firstTerm: loops}, nil
}

// Run runs the loops until ctx ends, whenever this server leads. It stands for
// election until stopping is done, so that another server can take over while
// this one drains. After losing the lease it stands again.
func (h *Housekeeper) Run(ctx, stopping context.Context) error {
	flags := h.o.Flags.Operation.LeaderElect
	if !flags.Enabled {
		return together(ctx, slices.Concat(h.firstTerm, h.o.Others))
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("identity in the leader election: %w", err)
	}
	config := flags.Config()
	config.Leases, config.Identity = leases{h.o.Leases, flags.Namespace, flags.Name}, leader.NewIdentity(host)
	config.Clock, config.Logger = h.o.Loops.Clock, h.o.Loops.Logger.Named("leader")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stopping, cancel)()
	for term := 1; ; term++ {
		elector, err := leader.New(config)
		if err != nil {
			return err
		}
		err = elector.Run(ctx, func(ctx context.Context) error { return h.serve(ctx, term) })
		if ctx.Err() != nil {
			return nil
		}
		h.o.Loops.Logger.Warn("housekeeping stopped, standing for election again", zap.Error(err))
	}
}

// serve runs the loops for one term. What they learned in an earlier term (say,
// when a node was last heard of) is too old to act on, so they start afresh.
func (h *Housekeeper) serve(ctx context.Context, term int) error {
	if term == 1 {
		return together(ctx, slices.Concat(h.firstTerm, h.o.Others))
	}
	anew := h.o.Loops
	anew.Pods = h.o.Pods()
	loops, err := housekeeping.New(anew, h.o.Flags.Controller)
	if err != nil {
		return err
	}
	return together(ctx, slices.Concat(loops, h.o.Others, []housekeeping.Loop{anew.Pods.Run}))
}

// together runs loops until ctx ends or one of them fails.
func together(ctx context.Context, loops []housekeeping.Loop) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range loops {
		group.Go(func() error { return loop(ctx) })
	}
	<-ctx.Done()
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
