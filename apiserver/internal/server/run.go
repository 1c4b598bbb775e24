package server

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/server/serving"
	"kctl/proto/daemon"
)

// Run serves until ctx ends, and drains.
func (s *Server) Run(ctx context.Context) error {
	defer s.endStreams()
	listener, err := serving.Listen(ctx, s.options)
	if err != nil {
		return err
	}
	s.endpoint.port = serving.Port(listener)
	handler, err := s.surface.handler(listener.Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.logger.Info("serving", zap.Stringer("address", listener.Addr()), zap.String("version", daemon.Version().GitVersion))
	port := &serving.Server{
		Flags: s.options, TLS: s.tls, Stopping: s.stop, EndStreams: s.endStreams, Drain: s.surface.drain, Metrics: s.metrics, Clock: s.clock,
		Logger: s.logger,
	}
	handler = s.surface.api.withoutSlash(handler)
	loops := append(s.allLoops(), func(ctx context.Context) error { return s.itself.Serve(ctx, handler) })
	return s.run(ctx, loops, func(ctx context.Context) error { return port.Serve(ctx, listener, handler) })
}

// run runs the loops while requests are served, and stops serving when a loop
// fails.
func (s *Server) run(ctx context.Context, loops []housekeeping.Loop, serve func(context.Context) error) error {
	group, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	running, stopLoops := context.WithCancel(failed)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(failed, cancel)()

	for _, loop := range loops {
		group.Go(func() error {
			if err := loop(running); running.Err() == nil {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		defer stopLoops()
		return serve(ctx)
	})
	return group.Wait()
}

// allLoops are all loops that run beside the requests. They start together; those
// that depend on start wait for its phases.
func (s *Server) allLoops() []housekeeping.Loop {
	loops := []housekeeping.Loop{
		s.objects.resources.Run, s.objects.definitions.Run, s.objects.aggregator.Run, // keep what is served in step with etcd
		s.access.rules.Run, s.access.pods.Run, s.policy.admission.Run, // and what decisions are based on
		s.start,
		s.keepHouse, s.presence.reconcileEndpoints, s.presence.keepIdentity, s.stamps.run, // once bootstrapped
		s.watchBackend, s.watchdog,
	}
	if s.options.Operation.CompactionInterval > 0 {
		loops = append(loops, s.database.backend.Compactor.Run)
	}
	loops = append(loops, s.database.encryptionLoops()...)
	if s.policy.auditor != nil {
		loops = append(loops, s.policy.auditor.Run)
	}
	if s.policy.fairness != nil {
		loops = append(loops, s.policy.fairness.Run)
	}
	for _, file := range s.Files() {
		loops = append(loops, file.Run)
	}
	return loops
}

// watchBackend stops the server if its embedded etcd stops.
func (s *Server) watchBackend(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.database.backend.Failed:
		return fmt.Errorf("embedded etcd: %w", err)
	}
}
