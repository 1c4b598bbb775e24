package kubelet

import (
	"context"
	"path/filepath"
	"time"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/dns"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/runtimeclass"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/service"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
)

// makeRuntime creates everything that acts on pods.
func (k *Kubelet) makeRuntime(ctx context.Context) error {
	if err := k.health.Wait(ctx); err != nil {
		return err
	}
	err := k.setUpCgroups(ctx)
	if err != nil {
		return err
	}
	k.objects = objects.New(k.client, k.clock)
	if err := k.makeVolumes(); err != nil {
		return err
	}
	if err := k.makeUserNamespaces(ctx); err != nil {
		return err
	}
	if k.client != nil {
		k.services = service.NewLister(k.client, k.clock, k.logger)
		k.classes = runtimeclass.NewManager(k.client, k.clock, k.logger)
	}
	registries, err := k.makeRegistries()
	if err != nil {
		return err
	}
	if k.imageAccess, err = k.makeImageAccess(ctx); err != nil {
		return err
	}
	k.makeImages(k.imageAccess.Prune)
	if k.state, err = runtimestate.NewReader(ctx, k.cri, k.clock); err != nil {
		return err
	}
	configs, err := k.makeConfigs()
	if err != nil {
		return err
	}
	config := podruntime.Config{
		Events: k.events, Configs: configs, Clock: k.clock, Logger: k.logger, PodLogsDir: k.config.PodLogsDir, HostIPs: k.ownIPs,
		MaxParallelPulls: k.config.PullsAtOnce(), Registries: registries, ImageAccess: k.imageAccess, ImageAsked: k.metrics.ImageAsked, ImageUsed: k.imageUsed, MaxContainerBackOff: k.config.MaxContainerRestartPeriod,
		Count: k.metrics.Count, Started: k.metrics.ObserveStart, Restarting: k.statuses.Restarting, ImagePulled: k.metrics.ObservePull, ImageFetched: k.statuses.Pulled, SandboxStarted: k.metrics.ObserveSandbox,
	}
	if k.classes != nil {
		config.RuntimeHandler = k.classes.Handler
	}
	k.runtime, err = podruntime.New(k.cri, k.state, config)
	return err
}

// makeVolumes creates the volume manager.
func (k *Kubelet) makeVolumes() (err error) {
	k.volumes, err = volume.NewManager(volume.Config{
		RootDir: k.config.RootDir, Objects: k.objects, Clock: k.clock, Logger: k.logger, Allocatable: k.allocatable,
		Failed:  func(pod *core.Pod, err error) { k.lifecycle.MountFailed(pod, err) },
		Observe: k.metrics.ObserveStorage, Labels: func() map[string]string { return k.node.Node().Labels },
		Warn: func(pod *core.Pod, reason, message string) {
			k.events.Eventf(pod, corev1.EventTypeWarning, reason, "%s", message)
		},
	})
	return err
}

// makeImages creates the collector of unused images.
func (k *Kubelet) makeImages(listed func(ids []string, at time.Time)) {
	k.images = image.NewCollector(image.CollectorOptions{
		Store: k.cri, Volumes: k.imageVolumes, Failed: k.nodeWarning, Clock: k.clock, Logger: k.logger, Removed: k.metrics.ImageRemoved, Listed: listed,
		Thresholds: image.Thresholds{
			High: int(k.config.Images.HighThresholdPercent), Low: int(k.config.Images.LowThresholdPercent), MinAge: k.config.Images.MinimumAge, MaxAge: k.config.Images.MaximumAge,
		},
	})
}

// imageVolumes are the images that pods of the node have as volumes.
func (k *Kubelet) imageVolumes() []string {
	var references []string
	for _, pod := range k.pods.Pods() {
		for i := range pod.Spec.Volumes {
			if image := pod.Spec.Volumes[i].Image; image != nil && k.active.Active(pod) {
				references = append(references, image.Reference)
			}
		}
	}
	return references
}

// makeConfigs creates the Maker of CRI configurations.
func (k *Kubelet) makeConfigs() (*runtimeconfig.Maker, error) {
	env := &environment.Sources{Events: k.events, Objects: k.objects, NodeName: k.nodeName, HostIPs: k.ownIPs, Allocatable: k.allocatable}
	if k.services != nil {
		env.Services, env.WaitForServices = k.services.List, k.services.WaitForSync
	}
	resolver := &dns.Configurer{ResolvConf: k.config.ResolvConf, Servers: k.config.ClusterDNS, Domain: k.config.ClusterDomain, NodeIPs: k.hostIPs}
	if k.hollow == nil { // simulated containers ask nobody for names
		resolver.Warn = func(pod *core.Pod, reason, text string) {
			k.events.Laterf(pod, corev1.EventTypeWarning, reason, "%s", text)
		}
		resolver.WarnNode = k.nodeWarning
	}
	k.resolver = resolver
	return runtimeconfig.New(runtimeconfig.Options{
		Environment: env, Reported: k.health.Reported, RootDir: k.config.RootDir, PodLogsDir: k.config.PodLogsDir,
		CgroupParent: k.cgroups.Parent, DNS: resolver.ForPod, UserIDs: k.userIDsOf, ClusterDomain: k.config.ClusterDomain,
		SeccompRoot: filepath.Join(k.config.RootDir, "seccomp"), SeccompDefault: k.config.SeccompDefault,
		NoCPUQuota: !k.config.CPUCFSQuota, CPUPeriod: k.config.CPUCFSQuotaPeriod.Microseconds(), OOMKillGroup: cgroups.IsCgroup2UnifiedMode() && !k.config.SingleProcessOOMKill, LimitedSwap: k.config.LimitedSwap,
	})
}

func (k *Kubelet) ownIPs() []string { return k.hostIPs }

// allocatable is the part of the node that pods may have.
func (k *Kubelet) allocatable() corev1.ResourceList { return k.node.Node().Status.Allocatable }
