package kubelet

import (
	"kctl/kubelet/internal/activepods"
	"kctl/kubelet/internal/podkiller"
	"kctl/kubelet/internal/synchandler"

	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/admit"
	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/allocation/checkpoint"
	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/dns"
	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/exitwatch"
	"kctl/kubelet/internal/garbagecollector"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/lifecycle"
	"kctl/kubelet/internal/logrotate"
	"kctl/kubelet/internal/metrics"
	"kctl/kubelet/internal/mirror"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/pleg"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/pullrecords"
	"kctl/kubelet/internal/runtimeclass"
	"kctl/kubelet/internal/runtimehealth"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/service"
	"kctl/kubelet/internal/shutdown"
	"kctl/kubelet/internal/source"
	"kctl/kubelet/internal/status"
	"kctl/kubelet/internal/syncloop"
	"kctl/kubelet/internal/userns"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/events"
	"kctl/proto/rest"
	"kctl/proto/tracing"
)

// Kubelet is all rooms of one kubelet. build makes them, part after part in this
// order, and Run runs each room's loop.
type Kubelet struct {
	config   *config.Config
	clock    clock.WithTicker
	logger   *zap.Logger
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	hollow   *Hollow // nil of one that runs pods

	// Who and where we are (identify).
	nodeName string
	appArmor bool // the kernel enforces profiles
	hostIPs  []string
	tracer   *tracing.Tracer // nil traces nothing

	// Our clients (connect), and what reports about pods through them (makeReports).
	client   *rest.Client // nil without an API server
	cri      *cri.Client
	health   *runtimehealth.Health
	statuses *status.Manager
	events   *podEvents
	mirrors  *mirror.Manager

	// The node as the API has it, and what it is short of (makeNode).
	node     *node.Manager
	port     atomic.Int32 // that the server listens on
	eviction *eviction.Manager
	usages   *usages // for the server's statistics

	// What acts on pods (makeRuntime).
	state       *runtimestate.Reader // of what the runtime has
	runtime     *podruntime.Manager
	cgroups     *cgroup.Manager
	objects     *objects.Objects
	volumes     *volume.Manager
	userIDs     *userns.Manager
	images      *image.Collector
	imageAccess *pullrecords.Records
	resolver    *dns.Configurer
	services    *service.Lister       // nil without an API server
	classes     *runtimeclass.Manager // nil without an API server

	// What is known about pods.
	pods        *podmanager.Manager
	cache       *podcache.Cache
	allocations *allocation.Manager
	grants      *checkpoint.Keeper // of the allocations; nil on a hollow node, which has no files

	// What decides when something happens to pods (makeLoops).
	mux       *source.Mux
	ready     *source.Ready
	pleg      *pleg.Generator
	probes    *probe.Manager
	loop      *syncloop.Loop
	workers   *podworker.Workers
	active    *activepods.Pods
	killer    *podkiller.Killer
	lifecycle *lifecycle.Lifecycle // the steps that the workers run
	shutdown  *shutdown.Manager    // nil where pods are left to the system's own shutdown
	handler   *synchandler.Handler // of what the loop routes

	// What removes what pods leave behind (makeLoops).
	cleaner   *synchandler.Cleaner
	collector *garbagecollector.Collector
	rotator   *logrotate.Rotator
}

// New makes a kubelet. It looks at the machine and reads files. It waits for its
// certificate, if it has to get one, and for the container runtime to answer.
func New(ctx context.Context, c *config.Config, logger *zap.Logger, registry *prometheus.Registry) (*Kubelet, error) {
	registry.MustRegister(daemon.Features(config.Gates)...)
	return build(ctx, c, nil, logger, registry)
}

func build(ctx context.Context, c *config.Config, hollow *Hollow, logger *zap.Logger, registry *prometheus.Registry) (*Kubelet, error) {
	k := &Kubelet{
		config: c, hollow: hollow, clock: clock.RealClock{}, logger: logger, registry: registry, metrics: metrics.New(registry),
		pods: podmanager.New(), cache: podcache.New(), allocations: allocation.New(),
	}
	if err := k.identify(); err != nil {
		return nil, err
	}
	k.logger = logger.With(zap.String("node", k.nodeName))
	var err error
	if k.tracer, err = k.newTracer(ctx); err != nil {
		return nil, err
	}
	if err := k.connect(ctx); err != nil {
		return nil, err
	}
	k.makeReports(ctx)
	if err := k.makeNode(logger); err != nil {
		return nil, err
	}
	if err := k.makeRuntime(ctx); err != nil {
		return nil, err
	}
	k.restoreGrants()
	return k, k.makeLoops(ctx)
}

// identify finds out who and where we are.
func (k *Kubelet) identify() error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	k.nodeName, k.appArmor = strings.ToLower(host), k.hollow != nil || admit.AppArmorEnforced()
	if k.config.NodeName != "" {
		k.nodeName = strings.ToLower(k.config.NodeName)
	}
	if k.config.NodeIP != "" {
		if k.hostIPs, err = core.ParseNodeIPs(k.config.NodeIP); err != nil {
			return fmt.Errorf("--node-ip: %w", err)
		}
	} else {
		ip, err := core.OwnAddress()
		if err != nil {
			return err
		}
		k.hostIPs = []string{ip.String()}
	}
	for _, dir := range []string{podfiles.PodsDir(k.config.RootDir), k.config.PodLogsDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

// connect makes the clients of the API server, if there is one, and of the
// container runtime. It sends no requests yet, unless the kubelet has to get
// its certificate first.
func (k *Kubelet) connect(ctx context.Context) error {
	if k.config.Kubeconfig != "" {
		cfg, err := k.credentials(ctx)
		if err != nil {
			return err
		}
		requests := daemon.NewRequests()
		k.registry.MustRegister(requests)
		cfg.UserAgent, cfg.Meter, cfg.Told = "kubelet/"+daemon.Version().GitVersion, requests, daemon.Told(k.logger)
		if k.tracer != nil {
			cfg.Propagate = tracing.Inject
		}
		if k.client, err = rest.New(cfg); err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	var err error
	options := cri.Options{Timeout: k.config.RuntimeRequestTimeout, Observe: k.metrics.ObserveRuntime, Tracer: k.tracer}
	if k.hollow != nil {
		k.cri = cri.NewOver(k.hollow.Runtime.Connection(), options)
	} else if k.cri, err = cri.New(k.config.ContainerRuntimeEndpoint, options); err != nil {
		return fmt.Errorf("--container-runtime-endpoint: %w", err)
	}
	k.health = runtimehealth.New(k.cri, k.runtimeChanged, k.clock, k.logger)
	return nil
}

// makeReports makes what sends pods' statuses to the API, and events about them.
func (k *Kubelet) makeReports(ctx context.Context) {
	k.events = &podEvents{pods: k.pods, clock: k.clock}
	k.statuses = status.NewManager(status.Options{
		API: status.RESTAPI{Client: k.client}, Pods: k.pods, Clock: k.clock, Logger: k.logger, Resting: k.events.rested,
		Running: func(sinceSeen time.Duration) { k.metrics.PodStart.Observe(sinceSeen.Seconds()) },
		Started: k.metrics.ObservePodStart,
		Sent:    func(took time.Duration) { k.metrics.StatusSent.Observe(took.Seconds()) },
		Ended:   k.metrics.ObserveEnd,
	})
	k.events.statuses = k.statuses
	if k.client != nil {
		k.events.recorder = events.NewRecorder(k.client, events.Options{Component: "kubelet", Host: k.nodeName, Busy: k.events.starting, LongestWait: longestWait}, k.clock, k.logger)
	}
	k.mirrors = mirror.New(ctx, k.client, k.pods, func() *core.Node { return k.node.Node() }, k.clock, k.logger)
}

// makeLoops makes what decides when something happens.
func (k *Kubelet) makeLoops(ctx context.Context) error {
	k.makeProbes()
	if err := k.makeShutdown(); err != nil {
		return err
	}
	k.mux = source.NewMux(k.clock, k.logger)
	k.ready = source.NewReady(k.sources()...)
	var exits pleg.Exits // simulated containers have no process
	if k.hollow == nil {
		exits = exitwatch.New(k.cri, func(container string) { k.pleg.ContainerEnded(container) }, k.clock, k.logger)
	}
	k.pleg = pleg.New(pleg.Options{
		Runtime: k.state, Cache: k.cache, Clock: k.clock, Logger: k.logger, Observe: k.metrics.ObserveRelist, Exits: exits,
		Stream: &pleg.Stream{
			Open:      func(ctx context.Context) (pleg.Receiver, error) { return k.cri.Events(ctx) },
			Connected: k.metrics.Streams.Inc, Failed: k.metrics.StreamErrors.Inc,
			Received: func(age time.Duration) { k.metrics.StreamLatency.Observe(age.Seconds()) },
		},
	})
	k.makeWorkers(ctx)
	k.collector = garbagecollector.New(garbagecollector.Options{
		State: k.state, Runtime: k.runtime, Directories: directories{k.volumes, k.userIDs}, Cgroups: k.cgroups, PodLogsDir: k.config.PodLogsDir,
		Known: func(uid types.UID) bool { return !k.active.Forgotten(uid) }, Ended: k.active.Ended,
		Evicted: func(uid types.UID) bool { return k.active.EndedFor(uid, podkiller.Evicted, podkiller.Preempting) },
		Ready:   k.ready.All, Failed: k.nodeWarning, Clock: k.clock, Logger: k.logger,
	})
	k.rotator = logrotate.New(logrotate.Options{
		Runtime: k.state, Reopener: k.cri, PodLogsDir: k.config.PodLogsDir, MaxSize: k.config.ContainerLogs.MaxSize.Value(),
		MaxFiles: int(k.config.ContainerLogs.MaxFiles), Workers: int(k.config.ContainerLogs.Workers), Interval: k.config.ContainerLogs.Interval,
		Clock: k.clock, Logger: k.logger,
	})
	k.makeSyncLoop()
	return nil
}

// runtimeChanged has what hangs on the runtime's health seen to at once.
func (k *Kubelet) runtimeChanged() {
	k.node.UpdateStatusSoon()
	if k.loop != nil { // not while the runtime is waited for at start
		k.loop.Wake()
	}
}

// runtimeError says why pods can't be worked on now.
func (k *Kubelet) runtimeError() error {
	if err := k.health.RuntimeError(); err != nil {
		return err
	}
	return k.pleg.Healthy()
}

func (k *Kubelet) address(port int32) string {
	return net.JoinHostPort(k.config.Address, fmt.Sprint(port))
}
