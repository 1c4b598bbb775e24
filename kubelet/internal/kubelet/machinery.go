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
	"kctl/kubelet/internal/userns"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
	"kctl/proto/relay"
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

// makeMachinery makes what acts on pods. Of rooms that are made after it, it asks only once pods run.
func (k *Kubelet) makeMachinery(ctx context.Context) (err error) {
	m := &machinery{objects: objects.New(k.client, k.clock, k.config.ChangeDetection, k.logger)}
	k.machinery = m
	if m.cgroups, err = k.newCgroups(ctx, k.cri, k.node.Node().Status.Capacity); err != nil {
		return err
	}
	mountFailed := func(pod *core.Pod, err error) { k.lifecycle.MountFailed(pod, err) }
	if m.volumes, err = k.newVolumes(m.objects, k.node, k.events, mountFailed); err != nil {
		return err
	}
	if m.userIDs, err = k.newUserNamespaces(ctx); err != nil {
		return err
	}
	if k.client != nil {
		m.services = service.NewLister(k.client, k.clock, k.logger)
		m.classes = runtimeclass.NewManager(k.client, k.clock, k.logger)
	}
	if m.imageAccess, err = k.newImageAccess(ctx, k.cri); err != nil {
		return err
	}
	volumeImages := func() []string { return k.active.VolumeImages() }
	m.images = k.newImages(k.cri, k.events, volumeImages, m.imageAccess)
	if m.state, err = runtimestate.NewReader(ctx, k.cri, k.clock); err != nil {
		return err
	}
	m.resolver = k.newResolver(k.events)
	m.runtime, err = k.newPodRuntime(m)
	return err
}

// newPodRuntime creates what runs pods with the rest of the machinery.
func (k *Kubelet) newPodRuntime(m *machinery) (*podruntime.Manager, error) {
	registries, err := k.newRegistries(k.client, m.objects)
	if err != nil {
		return nil, err
	}
	configs, err := k.newConfigs(m, k.health, k.events, k.node)
	if err != nil {
		return nil, err
	}
	config := podruntime.Config{
		Events: k.events, Configs: configs, Clock: k.clock, Logger: k.logger, PodLogsDir: k.config.PodLogsDir, HostIPs: k.identity.HostIPs,
		Count: k.metrics.Count, Started: k.metrics.ObserveStart, SandboxStarted: k.metrics.ObserveSandbox,
		Resized:    k.metrics.ObserveResize,
		Restarting: k.statuses.Restarting, MaxContainerBackOff: k.config.MaxContainerRestartPeriod,
		Registries: registries, MaxParallelPulls: k.config.Pulls.AtOnce(), ImageAccess: m.imageAccess,
		ImageAsked: k.metrics.ImageAsked, ImagePulled: k.metrics.ObservePull, ImageFetched: k.statuses.Pulled,
		// The event of an image comes when the container begins, which is later than the node has the image.
		ImageUsed: func(r image.Request, id string) {
			k.events.stamp(r.Pod, r.FieldPath, relay.KubeletImagePulled)
			m.images.Use(id)
		},
	}
	if m.classes != nil {
		config.RuntimeHandler = m.classes.Handler
	}
	return podruntime.New(k.cri, m.state, config)
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
		HostIPs:     g.identity.HostIPs,
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
		VolumeGroups: func(pod types.UID) []int64 { return m.volumes.Groups(pod) },
		CgroupParent: m.cgroups.Parent, NoCPUQuota: !g.config.Cgroups.CPUCFSQuota, CPUPeriod: g.config.Cgroups.CPUCFSQuotaPeriod.Microseconds(),
		OOMKillGroup: cgroups.IsCgroup2UnifiedMode() && !g.config.Cgroups.SingleProcessOOMKill, LimitedSwap: g.config.Cgroups.LimitedSwap,
		MemoryQoS: g.config.MemoryQoS(),
	})
}

// allocatable returns the part of the node that pods may have, as it is when that is asked for.
func allocatable(node *node.Manager) func() corev1.ResourceList {
	return func() corev1.ResourceList { return node.Node().Status.Allocatable }
}
