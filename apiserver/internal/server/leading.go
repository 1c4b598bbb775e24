package server

import (
	"context"
	"os"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"kctl/apiserver/internal/housekeeping"
	"kctl/proto/leader"
)

// lead runs the housekeeping loops while this server leads: of several servers
// over one etcd, one keeps house. Servers that lost the lease stand again.
func (s *Server) lead(ctx context.Context) error {
	if !wait(ctx, s.bootstrapped) {
		return ctx.Err()
	}
	o := s.options.Operation.LeaderElect
	if !o.Enabled {
		return together(ctx, slices.Concat(s.firstTerm, s.everyTerm))
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	identity := leader.NewIdentity(host)
	ctx, stop := s.untilStopping(ctx)
	defer stop()
	for term := 1; ; term++ {
		elector, err := leader.New(leader.Config{
			Leases:    leases{s.resources.Leases, o.Namespace, o.Name},
			Namespace: o.Namespace, Name: o.Name, Identity: identity,
			LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod,
			Clock: s.clock, Logger: s.logger.Named("leader"),
		})
		if err != nil {
			return err
		}
		err = elector.Run(ctx, func(ctx context.Context) error { return s.keepHouseFor(ctx, term) })
		if ctx.Err() != nil {
			return nil
		}
		s.logger.Warn("housekeeping stopped, standing for election again", zap.Error(err))
	}
}

// untilStopping ends with ctx and when the server is told to stop: another one
// can keep house while this one drains.
func (s *Server) untilStopping(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.stopping:
			cancel()
		}
	}()
	return ctx, cancel
}

// keepHouseFor runs the loops for one term. What they learned in an earlier one
// is too old to act on (when a node was last heard of, say), so that they begin
// anew.
func (s *Server) keepHouseFor(ctx context.Context, term int) error {
	if term == 1 {
		return together(ctx, slices.Concat(s.firstTerm, s.everyTerm))
	}
	house := s.house
	house.Pods = s.newPods()
	loops, err := housekeeping.New(house, s.options.Controller)
	if err != nil {
		return err
	}
	return together(ctx, slices.Concat(loops, s.everyTerm, []housekeeping.Loop{house.Pods.Run}))
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
