package podruntime

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/hook"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

// Manager brings pods to what their specs ask for. It is safe for concurrent
// use, except that for one pod only one of SyncPod, KillPod and RemovePod may
// run at a time; a second RemovePod waits for the first.
type Manager struct {
	Config
	runtime  *cri.Client
	state    *runtimestate.Reader
	images   *image.Manager
	hooks    *hook.Runner
	crashes  *backoff.Keyed[containerKey]
	ends     *ends
	removals removals
}

// New returns a Manager for the runtime.
func New(runtime *cri.Client, state *runtimestate.Reader, c Config) (*Manager, error) {
	if c.Events == nil || c.Configs == nil || c.Clock == nil || c.Logger == nil || c.PodLogsDir == "" {
		return nil, errors.New("pod runtime: Events, Configs, Clock, Logger and PodLogsDir must be given")
	}
	if c.MaxContainerBackOff == 0 {
		c.MaxContainerBackOff = maxCrashBackOff
	}
	m := &Manager{
		Config:  c,
		runtime: runtime,
		state:   state,
		images: image.New(image.Options{
			Runtime: runtime, Events: c.Events, Clock: c.Clock, Logger: c.Logger,
			Parallel: c.MaxParallelPulls, Node: c.Registries, Access: c.ImageAccess,
			Asked: c.ImageAsked, Used: c.ImageUsed, Pulled: c.ImagePulled, Fetched: c.ImageFetched,
		}),
		crashes: backoff.NewKeyed[containerKey](backoff.Policy{
			Initial: min(initialCrashBackOff, c.MaxContainerBackOff),
			Max:     c.MaxContainerBackOff,
		}, c.Clock),
		ends:     newEnds(c.MaxContainerBackOff),
		removals: removals{busy: map[types.UID]chan struct{}{}},
	}
	m.hooks = hook.New(hook.Options{Runtime: runtime, Address: m.address, FellBack: m.hookFellBack, Clock: c.Clock})
	return m, nil
}

// address returns the host for httpGet hooks of a pod's containers.
func (m *Manager) address(ctx context.Context, pod *core.Pod) (string, error) {
	status, err := m.state.PodStatus(ctx, pod.UID, pod.Name, pod.Namespace)
	switch {
	case err != nil:
		return "", err
	case pod.Spec.HostNetwork && m.HostIPs != nil && len(m.HostIPs()) > 0:
		return m.HostIPs()[0], nil
	case len(status.IPs) > 0:
		return status.IPs[0], nil
	}
	return "", errors.New("httpGet hook: the pod has no address")
}

// hookFellBack tells users of an HTTPS hook that was answered over plain HTTP.
func (m *Manager) hookFellBack(pod *core.Pod, host string) {
	m.count(HTTPHooksFellBack, 1)
	m.Events.Eventf(pod, corev1.EventTypeWarning, "LifecycleHTTPFallback",
		"request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", host)
}
