package kubelet

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/evictor"
	"kctl/kubelet/internal/garbagecollector"
	"kctl/kubelet/internal/identity"
	"kctl/kubelet/internal/lifecycle"
	"kctl/kubelet/internal/logrotate"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/mirror"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/nodestats"
	"kctl/kubelet/internal/pleg"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/runtimehealth"
	"kctl/kubelet/internal/serving"
	"kctl/kubelet/internal/shutdown"
	"kctl/kubelet/internal/status"
	"kctl/kubelet/internal/synchandler"
	"kctl/kubelet/internal/syncloop"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/events"
	"kctl/proto/rest"
	"kctl/proto/tracing"
)

// given is what there is before any room. Its methods make rooms of that and of those that they are
// given.
type given struct {
	config   *config.Config
	hollow   *Hollow // nil of a kubelet that runs pods
	identity *identity.Identity
	clock    clock.WithTicker
	logger   *zap.Logger
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	tracer   *tracing.Tracer // nil traces nothing
}

// Kubelet has the rooms of one kubelet. build makes them in this order, and Run runs each one's loop.
//
// A room is given the earlier ones that it calls. Some also ask or tell later ones, by functions that are
// called only once all are made: the events ask for the node, the node tells what the eviction, the shutdown
// and the lifecycle events find (newNode), the machinery asks which pods are active and tells the lifecycle of
// mounts that fail, and the workers' steps ask about other pods (makeWorkers). Two are called earlier, and
// look whether there is anything to ask or tell yet: underPressure and runtimeChanged.
type Kubelet struct {
	*given

	// What is known about pods.
	pods        *podmanager.Manager
	cache       *podcache.Cache
	allocations *allocation.Manager

	// Whom we talk to.
	client  *rest.Client // nil without an API server
	cri     *cri.Client
	health  *runtimehealth.Health
	servers *serving.Servers

	// What tells the API of pods and of the node.
	statuses *status.Manager
	events   *podEvents
	node     *node.Manager
	mirrors  *mirror.Manager

	// What acts on pods.
	machinery *machinery
	grants    *grants  // nil on a hollow node, which has no files
	sources   *sources // where pods come from
	probes    *probe.Manager
	pleg      *pleg.Generator
	lifecycle *lifecycle.Lifecycle // the steps that the workers run
	workers   *podworker.Workers
	active    *activepods.Pods

	// What ends pods for the node, and removes what they leave behind.
	killer    *podkiller.Killer
	collector *garbagecollector.Collector
	rotator   *logrotate.Rotator
	evictor   *evictor.Evictor
	usages    *nodestats.Usages
	eviction  *eviction.Manager
	shutdown  *shutdown.Manager // nil where pods are left to the system's own shutdown

	// What decides when something happens to pods.
	cleaner *synchandler.Cleaner
	handler *synchandler.Handler
	loop    *syncloop.Loop
}

// New makes a kubelet. It looks at the machine and reads files. It waits for its
// certificate, if it has to get one, and for the container runtime to answer. The pods' workers
// end with ctx, and with Run.
func New(ctx context.Context, c *config.Config, clock clock.WithTicker, logger *zap.Logger,
	registry *prometheus.Registry) (*Kubelet, error) {
	registry.MustRegister(daemon.Features(config.Gates)...)
	return build(ctx, c, nil, clock, logger, registry)
}

func build(ctx context.Context, c *config.Config, hollow *Hollow, clock clock.WithTicker, logger *zap.Logger,
	registry *prometheus.Registry) (*Kubelet, error) {
	id, err := identity.Find(c, clock, logger)
	if err != nil {
		return nil, err
	}
	g := &given{
		config:   c,
		hollow:   hollow,
		identity: id,
		clock:    clock,
		logger:   logger.With(zap.String("node", id.NodeName)),
		registry: registry,
		metrics:  metrics.New(registry),
	}
	if err := makeDirectories(c); err != nil {
		return nil, err
	}
	if g.tracer, err = g.newTracer(ctx); err != nil {
		return nil, err
	}
	k := &Kubelet{given: g, pods: podmanager.New(), cache: podcache.New(), allocations: allocation.New()}
	if err := k.connect(ctx); err != nil {
		return nil, err
	}
	if err := k.makeNode(ctx); err != nil {
		return nil, err
	}
	if err := k.health.Wait(ctx); err != nil {
		return nil, err
	}
	if err := k.makeMachinery(ctx); err != nil {
		return nil, err
	}
	k.grants = g.restoreGrants(k.allocations)
	k.makeWorkers(ctx)
	if err := k.makeEnders(); err != nil {
		return nil, err
	}
	k.makeSyncLoop()
	return k, nil
}

func makeDirectories(c *config.Config) error {
	for _, dir := range []string{podfiles.PodsDir(c.RootDir), c.PodLogsDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

// connect makes the clients of the API server, if there is one, and of the
// container runtime. It sends no requests yet, unless the kubelet has to get
// its certificate first.
func (k *Kubelet) connect(ctx context.Context) (err error) {
	if k.client, err = k.newClient(ctx); err != nil {
		return err
	}
	if k.cri, err = k.newCRI(); err != nil {
		return err
	}
	k.health = runtimehealth.New(k.cri, k.runtimeChanged, k.clock, k.logger)
	k.servers = serving.New(k.config, k.identity, k.client, k.clock, k.logger)
	return nil
}

// newClient returns the API server's; nil if there is none.
func (g *given) newClient(ctx context.Context) (*rest.Client, error) {
	if g.config.Kubeconfig == "" {
		return nil, nil
	}
	cfg, err := g.identity.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	requests := daemon.NewRequests()
	g.registry.MustRegister(requests)
	cfg.UserAgent, cfg.Meter, cfg.OnFileProblem = daemon.UserAgent("kubelet"), requests, daemon.LogFileProblems(g.logger)
	if g.tracer != nil {
		cfg.Propagate = tracing.Inject
	}
	client, err := rest.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return client, nil
}

func (g *given) newCRI() (*cri.Client, error) {
	options := cri.Options{Timeout: g.config.RuntimeRequestTimeout, Observe: g.metrics.ObserveRuntime, Tracer: g.tracer}
	if g.hollow != nil {
		return cri.NewOver(g.hollow.Runtime.Connection(), options), nil
	}
	client, err := cri.New(g.config.ContainerRuntimeEndpoint, options)
	if err != nil {
		return nil, fmt.Errorf("--container-runtime-endpoint: %w", err)
	}
	return client, nil
}

// makeNode makes what tells the API of pods and of the node.
func (k *Kubelet) makeNode(ctx context.Context) (err error) {
	k.statuses, k.events = k.newReports(k.client, k.pods, func() *core.Node { return k.node.Node() })
	if k.node, err = k.newNode(); err != nil {
		return err
	}
	k.mirrors = mirror.New(ctx, k.client, k.pods, k.node.Node, k.events, k.clock, k.logger)
	return nil
}

// newReports makes what sends pods' statuses to the API, and events about them.
func (g *given) newReports(client *rest.Client, pods *podmanager.Manager, node func() *core.Node) (*status.Manager, *podEvents) {
	about := &podEvents{pods: pods, node: node, clock: g.clock}
	about.statuses = status.NewManager(status.Options{
		API:     status.RESTAPI{Client: client},
		Pods:    pods,
		Clock:   g.clock,
		Logger:  g.logger,
		Resting: about.rested,
		Running: func(sinceSeen time.Duration) { g.metrics.PodStart.Observe(sinceSeen.Seconds()) },
		Started: g.metrics.ObservePodStart,
		Sent:    func(took time.Duration) { g.metrics.StatusSent.Observe(took.Seconds()) },
		Ended:   g.metrics.ObserveEnd,
	})
	if client != nil {
		about.recorder = events.NewRecorder(client, events.Options{
			Component: "kubelet", Host: g.identity.NodeName, Busy: about.starting, LongestWait: longestWait,
		}, g.clock, g.logger)
	}
	return about.statuses, about
}

// makeEnders makes what ends pods for the node, and what removes what they leave behind.
func (k *Kubelet) makeEnders() (err error) {
	k.killer = podkiller.New(k.workers, k.mirrors, k.clock)
	k.collector = k.newCollector(k.machinery, k.active, k.sources.ready, k.events)
	k.rotator = k.newRotator(k.machinery.state, k.cri)
	k.evictor = evictor.New(evictor.Options{
		Killer:    k.killer,
		Collector: k.collector,
		Images:    k.machinery.images,
		Events:    k.events,
		Metrics:   k.metrics,
		Clock:     k.clock,
		Logger:    k.logger,
	})
	if err := k.makeEviction(); err != nil {
		return err
	}
	k.shutdown, err = k.newShutdown(k.active, k.killer, k.statuses, k.events, k.node)
	return err
}
