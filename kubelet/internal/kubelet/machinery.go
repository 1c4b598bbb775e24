package kubelet

import (
	"context"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/dns"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/pullrecords"
	"kctl/kubelet/internal/runtimeclass"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimehealth"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/service"
	"kctl/kubelet/internal/status"
	"kctl/kubelet/internal/userns"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/proto/rest"
)

// machinery is the rooms that act on pods: what has their containers, sandboxes, images, volumes,
// control groups and user ids.
type machinery struct {
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
}

// later is what the machinery asks and tells of rooms that are made after it.
type later struct {
	volumeImages func() []string // those that active pods have as volumes
	mountFailed  func(pod *core.Pod, err error)
}

func (g *given) newMachinery(
	ctx context.Context, client *rest.Client, runtime *cri.Client, health *runtimehealth.Health, statuses *status.Manager, events *podEvents,
	node *node.Manager, later later,
) (*machinery, error) {
	groups, err := g.newCgroups(ctx, runtime, node.Node().Status.Capacity)
	if err != nil {
		return nil, err
	}
	m := &machinery{cgroups: groups, objects: objects.New(client, g.clock)}
	if m.volumes, err = g.newVolumes(m.objects, node, events, later.mountFailed); err != nil {
		return nil, err
	}
	if m.userIDs, err = g.newUserNamespaces(ctx); err != nil {
		return nil, err
	}
	if client != nil {
		m.services = service.NewLister(client, g.clock, g.logger)
		m.classes = runtimeclass.NewManager(client, g.clock, g.logger)
	}
	registries, err := g.newRegistries(client, m.objects)
	if err != nil {
		return nil, err
	}
	if m.imageAccess, err = g.newImageAccess(ctx, runtime); err != nil {
		return nil, err
	}
	m.images = g.newImages(runtime, events, later.volumeImages, m.imageAccess)
	if m.state, err = runtimestate.NewReader(ctx, runtime, g.clock); err != nil {
		return nil, err
	}
	m.resolver = g.newResolver(events)
	configs, err := g.newConfigs(m, health, events, node)
	if err != nil {
		return nil, err
	}
	config := podruntime.Config{
		Events: events, Configs: configs, Clock: g.clock, Logger: g.logger, PodLogsDir: g.config.PodLogsDir, HostIPs: g.hostIPs,
		Count: g.metrics.Count, Started: g.metrics.ObserveStart, SandboxStarted: g.metrics.ObserveSandbox,
		Restarting: statuses.Restarting, MaxContainerBackOff: g.config.MaxContainerRestartPeriod,
		Registries: registries, MaxParallelPulls: g.config.PullsAtOnce(), ImageAccess: m.imageAccess,
		ImageAsked: g.metrics.ImageAsked, ImagePulled: g.metrics.ObservePull, ImageFetched: statuses.Pulled,
		// The event of an image comes when the container begins, which is later than the node has the image.
		ImageUsed: func(r image.Request, id string) {
			events.stamp(r.Pod, r.FieldPath, relay.KubeletImagePulled)
			m.images.Use(id)
		},
	}
	if m.classes != nil {
		config.RuntimeHandler = m.classes.Handler
	}
	m.runtime, err = podruntime.New(runtime, m.state, config)
	return m, err
}

// newVolumes creates the volume manager.
func (g *given) newVolumes(objects *objects.Objects, node *node.Manager, events *podEvents,
	failed func(*core.Pod, error)) (*volume.Manager, error) {
	return volume.NewManager(volume.Config{
		RootDir: g.config.RootDir, Objects: objects, Clock: g.clock, Logger: g.logger,
		Allocatable: allocatable(node), Labels: func() map[string]string { return node.Node().Labels },
		Failed: failed, Observe: g.metrics.ObserveStorage,
		Warn: func(pod *core.Pod, reason, message string) {
			events.Eventf(pod, corev1.EventTypeWarning, reason, "%s", message)
		},
	})
}

// newImages creates the collector of unused images.
func (g *given) newImages(runtime *cri.Client, events *podEvents, volumes func() []string, access *pullrecords.Records) *image.Collector {
	return image.NewCollector(image.CollectorOptions{
		Store:   runtime,
		Volumes: volumes,
		Failed:  events.nodeWarning,
		Clock:   g.clock,
		Logger:  g.logger,
		Removed: g.metrics.ImageRemoved,
		Listed:  access.Prune,
		Thresholds: image.Thresholds{
			High:   int(g.config.Images.HighThresholdPercent),
			Low:    int(g.config.Images.LowThresholdPercent),
			MinAge: g.config.Images.MinimumAge,
			MaxAge: g.config.Images.MaximumAge,
		},
	})
}

// newResolver creates what gives pods their resolv.conf.
func (g *given) newResolver(events *podEvents) *dns.Configurer {
	resolver := &dns.Configurer{
		ResolvConf: g.config.ResolvConf,
		Servers:    g.config.ClusterDNS,
		Domain:     g.config.ClusterDomain,
		NodeIPs:    g.identity.HostIPs,
	}
	if g.hollow == nil { // simulated containers ask nobody for names
		resolver.Warn = func(pod *core.Pod, reason, text string) {
			events.Laterf(pod, corev1.EventTypeWarning, reason, "%s", text)
		}
		resolver.WarnNode = events.nodeWarning
	}
	return resolver
}

// newConfigs creates the Maker of CRI configurations.
func (g *given) newConfigs(m *machinery, health *runtimehealth.Health, events *podEvents,
	node *node.Manager) (*runtimeconfig.Maker, error) {
	env := &environment.Sources{
		Events:      events,
		Objects:     m.objects,
		NodeName:    g.identity.NodeName,
		HostIPs:     g.hostIPs,
		Allocatable: allocatable(node),
	}
	if m.services != nil {
		env.Services, env.WaitForServices = m.services.List, m.services.WaitForSync
	}
	return runtimeconfig.New(runtimeconfig.Options{
		Environment: env, Reported: health.Reported, RootDir: g.config.RootDir, PodLogsDir: g.config.PodLogsDir,
		DNS: m.resolver.ForPod, ClusterDomain: g.config.ClusterDomain,
		SeccompRoot: filepath.Join(g.config.RootDir, "seccomp"), SeccompDefault: g.config.SeccompDefault,
		UserIDs:      func(pod types.UID) (first, count uint32, err error) { return userIDsOf(m.userIDs, pod) },
		CgroupParent: m.cgroups.Parent, NoCPUQuota: !g.config.CPUCFSQuota, CPUPeriod: g.config.CPUCFSQuotaPeriod.Microseconds(),
		OOMKillGroup: cgroups.IsCgroup2UnifiedMode() && !g.config.SingleProcessOOMKill, LimitedSwap: g.config.LimitedSwap,
	})
}

func (g *given) hostIPs() []string { return g.identity.HostIPs }

// allocatable returns the part of the node that pods may have, as it is when that is asked for.
func allocatable(node *node.Manager) func() corev1.ResourceList {
	return func() corev1.ResourceList { return node.Node().Status.Allocatable }
}
