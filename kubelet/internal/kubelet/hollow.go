package kubelet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/simulated"
	"kctl/kubelet/internal/volume"
	"kctl/proto/core"
)

// Hollow makes a kubelet only simulate running pods: to the API it is like any
// other, but on the machine it makes no container, control group or mount.
type Hollow struct {
	Runtime *simulated.Runtime
	// Machine is what the node reports to have.
	Machine node.Machine
}

// NewHollow makes a hollow kubelet. It needs an API server, and makes files
// below the configuration's directories.
func NewHollow(ctx context.Context, c *config.Config, h Hollow, clock clock.WithTicker, logger *zap.Logger,
	registry *prometheus.Registry) (*Kubelet, error) {
	if c.Kubeconfig == "" {
		return nil, errors.New("a hollow kubelet needs a kubeconfig")
	}
	hollow := *c
	hollow.Cgroups.PerQOS, hollow.Serving.EnableServer, hollow.Serving.HealthzPort, hollow.Serving.ReadOnlyPort = false, false, 0, 0
	hollow.Eviction.Hard, hollow.Eviction.Soft, hollow.Images.HighThresholdPercent = nil, nil, 100 // nothing of the machine is its business
	// Thousands of nodes in one process would have a watch for each object.
	hollow.ChangeDetection = kubeletv1beta1.TTLCacheChangeDetectionStrategy
	k, err := build(ctx, &hollow, &h, clock, logger, registry)
	if err == nil {
		h.Runtime.Behave = endInitContainers(k.pods, h.Runtime.Behave)
	}
	return k, err
}

// endInitContainers has init containers succeed at once, unless it is said when they
// end: their pods would never run otherwise. The runtime does not know which containers these are.
func endInitContainers(pods *podmanager.Manager, otherwise simulated.Behave) simulated.Behave {
	return func(sandbox *runtimeapi.PodSandboxConfig, container *runtimeapi.ContainerConfig) simulated.Behaviour {
		b := otherwise(sandbox, container)
		pod, known := pods.ByUID(types.UID(sandbox.GetMetadata().GetUid()))
		if known && b.After == 0 && slices.ContainsFunc(pod.Spec.InitContainers, func(c core.Container) bool {
			return c.Name == container.GetMetadata().GetName() && !core.IsSidecar(&c)
		}) {
			b.After = time.Nanosecond
		}
		return b
	}
}

// noProbes answers every probe of a simulated container with success.
type noProbes struct{}

func (noProbes) Probe(context.Context, probe.Target) (probe.Answer, error) {
	return probe.Answer{Result: probe.Success}, nil
}

// noVolumes are the volumes of hollow pods.
type noVolumes struct {
	*volume.Manager
	objects *objects.Objects
}

// Mount reads from the API what the pod's volumes would contain, as every
// kubelet does, and mounts nothing.
func (v noVolumes) Mount(ctx context.Context, pod *core.Pod) error {
	v.objects.Register(pod)
	v.objects.Prefetch(ctx, pod)
	return ctx.Err()
}

// Mounts returns none.
func (noVolumes) Mounts(context.Context, *core.Pod, *core.Container, map[string]string) ([]runtimeconfig.Mount, error) {
	return nil, nil
}
