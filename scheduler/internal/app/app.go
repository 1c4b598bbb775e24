package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/events"
	"kctl/proto/leader"
	"kctl/proto/rest"
	"kctl/proto/watch"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/config"
	"kctl/scheduler/internal/cycle"
	"kctl/scheduler/internal/eventhandlers"
	"kctl/scheduler/internal/explain"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominator"
	"kctl/scheduler/internal/plugins/defaultpreemption"
	"kctl/scheduler/internal/preemption"
	"kctl/scheduler/internal/profile"
	"kctl/scheduler/internal/queue"
	"kctl/scheduler/internal/report"
	"kctl/scheduler/internal/selectors"
	"kctl/scheduler/internal/volumes"
	"kctl/scheduler/internal/waitingpods"
)

// expireEvery is how often expired assumptions are taken out of the cache.
const expireEvery = 30 * time.Second

// Run schedules until ctx ends or the lease is lost, or only writes the configuration
// down if it was asked to: one with which it could schedule. The configuration may
// name plugins besides the built-in ones.
func Run(ctx context.Context, options *config.Options, configuration *profile.Configuration, plugins map[string]framework.Factory,
	logger *zap.Logger) error {
	s, err := assemble(options, configuration, plugins, clock.RealClock{}, logger)
	if err != nil {
		return err
	}
	for _, note := range configuration.Notes {
		logger.Info("note on the configuration", zap.String("note", note))
	}
	if options.WriteConfigTo != "" {
		return configuration.WriteTo(options.WriteConfigTo)
	}
	group, ctx := errgroup.WithContext(ctx)
	keeps := eventhandlers.Keeps(len(plugins) > 0 || s.extenders != nil)
	handlers := eventhandlers.New(ctx, keeps, s.queue, s.cache, s.nominator, s.waitingPods)
	watches := s.watches(handlers)
	for name, w := range watches {
		s.health.Add("informer-sync-"+name, isClosed(w.Synced()), daemon.Readyz)
	}
	// Nothing waits for the budgets: pods are placed without them, too.
	budgets := reflector(s, core.PodDisruptionBudgets, s.budgets, "")
	group.Go(func() error { return budgets.Run(ctx) })
	group.Go(func() error { return s.volumes.Run(ctx, s.client, watch.Options{Clock: s.clock, Logger: s.logger}) })
	group.Go(func() error { return s.queue.Run(ctx) })
	group.Go(func() error { return s.expire(ctx, handlers) })
	if options.SecurePort != 0 {
		group.Go(func() error { return s.serve(ctx, options, configuration, handlers.KnownPods) })
	}
	group.Go(func() error { return daemon.Watchdog(ctx, s.health, s.clock, logger) })
	// follow returns when the cluster is known; its watches go on.
	follow := func() error {
		for _, w := range watches {
			group.Go(func() error { return w.Run(ctx) })
		}
		for _, w := range watches {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-w.Synced():
			}
		}
		logger.Info("the cluster is known")
		return nil
	}
	group.Go(func() error { return s.compete(ctx, follow, configuration.DelayCache) })
	return group.Wait()
}

// compete leads once it is this scheduler's turn. It knows the cluster by then, so that
// it can take over at once, unless that is delayed.
func (s *parts) compete(ctx context.Context, follow func() error, delayed bool) error {
	lead := s.lead
	if delayed && s.elector != nil {
		lead = func(ctx context.Context) error {
			if err := follow(); err != nil {
				return err
			}
			return s.lead(ctx)
		}
	} else {
		daemon.Waiting("the API server", s.logger)
		if err := follow(); err != nil {
			return err
		}
	}
	daemon.Ready(s.logger)
	if s.elector == nil {
		return lead(ctx)
	}
	return s.elector.Run(ctx, lead)
}

// parts are what a running scheduler is made of.
type parts struct {
	client     *rest.Client
	clock      clock.Clock
	logger     *zap.Logger
	health     *daemon.Health
	queue      *queue.Queue
	cache      *cache.Cache
	namespaces *watch.Store[*core.Namespace]
	budgets    *watch.Store[*policyv1.PodDisruptionBudget]
	reporter   *report.Reporter
	selectors  *selectors.Selectors
	volumes    *volumes.Volumes
	preemption *preemption.Executor
	extenders  *extender.Chain // may be nil
	recorders  recorders

	nominator   *nominator.Nominator
	waitingPods *waitingpods.Map
	cycle       *cycle.Scheduler
	explainer   *explain.Explainer
	elector     *leader.Elector // nil without election
	metrics     *metrics.Metrics
	requests    *daemon.Requests
	gauges      metrics.Gauges
}

// connect returns a client, measured by meter, of the API server at master, or
// else of the one that a kubeconfig names. Without either, as for writing down a
// configuration, it is a client that nobody uses.
func connect(kubeconfig, master string, meter rest.Meter, logger *zap.Logger) (*rest.Client, error) {
	restConfig := &rest.Config{Host: "https://localhost"}
	if kubeconfig != "" {
		var err error
		if restConfig, err = rest.LoadKubeconfig(kubeconfig); err != nil {
			return nil, &daemon.UsageError{Err: err}
		}
	}
	if master != "" {
		restConfig.Host = master
	}
	restConfig.UserAgent, restConfig.Meter = daemon.UserAgent("kctl-scheduler"), meter
	restConfig.OnFileProblem = daemon.LogFileProblems(logger)
	restConfig.ConnectionPerRequest = true // as many Bindings are under way
	client, err := rest.New(restConfig)
	if err != nil {
		return nil, &daemon.UsageError{Err: err}
	}
	return client, nil
}

func assemble(options *config.Options, configuration *profile.Configuration, plugins map[string]framework.Factory, clock clock.Clock,
	logger *zap.Logger) (*parts, error) {
	requests := daemon.NewRequests()
	client, err := connect(options.Kubeconfig, options.Master, requests, logger)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this host: %w", err)
	}
	s := &parts{
		client: client, requests: requests, clock: clock, logger: logger,
		health: daemon.NewHealth(), metrics: metrics.New(), recorders: recorders{},
		cache: cache.New(clock, cache.DefaultExpiry), selectors: selectors.New(), budgets: newBudgets(),
		nominator: nominator.New(), waitingPods: waitingpods.New(clock),
	}
	// Called once volumes are watched, when the queue is there: it takes the profiles, whose plugins ask the volumes.
	s.volumes = volumes.New(clock, func(event framework.ClusterEvent) { s.queue.MoveAllToActiveOrBackoffQueue(event) })
	s.namespaces = newNamespaces(s.cache)
	api := apiPods{client}
	s.reporter = report.New(s.recorders, api, clock, logger)
	s.preemption = preemption.New(preemption.Options{
		API: api, Nominator: s.nominator, WaitingPods: s.waitingPods, Events: s.recorders.tellingFor,
		Clock: clock, Logger: logger,
	})
	if s.extenders, err = extender.NewChain(configuration.Extenders, logger); err != nil {
		return nil, &daemon.UsageError{Err: configuration.Locate(err)}
	}
	profiles, err := configuration.Build(s.services(plugins))
	if err != nil {
		return nil, &daemon.UsageError{Err: err}
	}
	for name := range profiles {
		s.recorders[name] = events.NewRecorder(client, events.Options{
			Component: name, Host: host, Actions: report.Actions, Busy: func() bool { return s.queue.Busy() },
		}, clock, logger)
	}
	s.assembleCycle(options, configuration, profiles, api)
	return s, s.newElector(options, host)
}

// assembleCycle makes the queue, the cycle that serves it, and what explains and measures both.
func (s *parts) assembleCycle(options *config.Options, configuration *profile.Configuration, profiles map[string]*framework.Profile,
	api apiPods) {
	s.queue = queue.New(queue.Options{
		Profiles: profiles, Clock: s.clock, FlushAfter: options.FlushAfter,
		Backoff: backoff.Policy{Initial: configuration.InitialBackoff, Max: configuration.MaxBackoff},
		Gated:   s.reporter.Gated, Incoming: s.metrics.Incoming, Handled: s.metrics.Handled, Hinted: s.metrics.Hinted,
	})
	s.nominator.OnRelease(func(pod *core.Pod) {
		s.queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: pod, Nominated: true,
		})
	})
	s.cycle = &cycle.Scheduler{
		Profiles: profiles, Queue: s.queue, Cache: s.cache, Nominator: s.nominator, WaitingPods: s.waitingPods,
		Pods: api, Extenders: s.extenders, Reporter: s.reporter, Clock: s.clock, Logger: s.logger, Metrics: s.metrics,
	}
	s.explainer = &explain.Explainer{
		Profiles: profiles, Cache: s.cache, Queue: s.queue, Nominator: s.nominator, Pods: api, Extenders: s.extenders,
	}
	s.gauges = metrics.Gauges{
		Pending: s.queue.Pending, Unschedulable: s.queue.Unschedulable, Inflight: s.queue.Inflight, CacheSizes: s.cache.Sizes,
		Leading: func() bool { return true }, Lease: options.Election.Name,
	}
}

// services are what plugins work with.
func (s *parts) services(plugins map[string]framework.Factory) profile.Services {
	return profile.Services{
		Handle: framework.Handle{
			Client: s.client, Clock: s.clock, Logger: s.logger, Waiting: s.waitingPods,
			Namespaces: func(name string) labels.Set {
				if namespace, ok := s.namespaces.Get("", name); ok {
					return namespace.Labels
				}
				return nil
			},
		},
		Plugins: plugins, Selectors: s.selectors, Volumes: s.volumes,
		Preemption: defaultpreemption.Services{
			Nominator: s.nominator, Extenders: s.extenders, Executor: s.preemption, Observe: s.metrics.Preempted,
			Activate: func(uid types.UID) { s.queue.Activate(uid) },
			Budgets: func(namespace string) []*policyv1.PodDisruptionBudget {
				return s.budgets.ByIndex(byNamespace, namespace)
			},
		},
	}
}

// newElector makes the elector, if schedulers are to elect their leader, and has others ask it.
func (s *parts) newElector(options *config.Options, host string) error {
	if !options.Election.Enabled {
		return nil
	}
	config := options.Election.Config()
	config.Client, config.Identity, config.Clock, config.Logger = s.client, leader.NewIdentity(host), s.clock, s.logger
	elector, err := leader.New(config)
	if err != nil {
		return &daemon.UsageError{Err: err}
	}
	s.elector, s.gauges.Leading, s.cycle.Leading = elector, elector.Leading, elector.Leading
	return nil
}

// lead does what only the leader does: place pods and write about them. The
// event recorder is stopped last, after everything that reports.
func (s *parts) lead(ctx context.Context) error {
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	var recorders sync.WaitGroup
	for _, recorder := range s.recorders {
		recorders.Go(func() { _ = recorder.Run(recording) }) // it ends by stop only
	}
	defer recorders.Wait()
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.reporter.Run(ctx) })
	group.Go(func() error { return s.preemption.Run(ctx) })
	group.Go(func() error { return s.cycle.Run(ctx) })
	return group.Wait()
}

// expire counts out pods whose binding was accepted and never seen.
func (s *parts) expire(ctx context.Context, handlers *eventhandlers.Handlers) error {
	for {
		if err := backoff.Sleep(ctx, s.clock, expireEvery); err != nil {
			return err
		}
		for _, pod := range s.cache.Expire() {
			s.logger.Warn("bound pod was never seen on its node and no longer counts there",
				daemon.PodFields(pod))
			handlers.OnExpired(pod)
		}
	}
}

var errNotYet = errors.New("the first list has not arrived yet")

func isClosed(c <-chan struct{}) func(context.Context) error {
	return func(context.Context) error {
		select {
		case <-c:
			return nil
		default:
			return errNotYet
		}
	}
}
