package lifecycle

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/allocation"
	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/objects"
	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/podruntime"
	"kctl/kubelet/internal/probe"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/status"
	"kctl/proto/core"
	"kctl/proto/tracing"
)

// Events tells people about pods.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
	// StartPod notes that a pod is being started, until the returned function is called.
	StartPod() (started func())
}

// Mirrors shows static pods in the API.
type Mirrors interface {
	Ensure(pod *core.Pod)
	Drop(pod *core.Pod)
}

// Volumes mounts and unmounts pods' volumes.
type Volumes interface {
	Mount(ctx context.Context, pod *core.Pod) error
	Mounts(ctx context.Context, pod *core.Pod, c *core.Container, env map[string]string) ([]runtimeconfig.Mount, error)
	Unmount(ctx context.Context, pod types.UID) error
	RemovePodDir(ctx context.Context, pod types.UID) error
}

// PLEG looks at pods in the runtime.
type PLEG interface {
	Poke()
	Inspect(pod types.UID)
}

// Options are the rooms that pods pass through.
type Options struct {
	RootDir    string // where pods/UID/ is made: /var/lib/kubelet
	PodLogsDir string // /var/log/pods

	// What is known about pods.
	Pods        *podmanager.Manager
	Cache       *podcache.Cache
	State       *runtimestate.Reader
	Allocations *allocation.Manager
	// What acts on them.
	Runtime *podruntime.Manager
	Groups  *cgroup.Manager
	Objects *objects.Objects
	Volumes Volumes
	// ReadFile reads a file of one of a pod's own volumes; nil if containers write none.
	ReadFile func(pod *core.Pod, volume, path string) ([]byte, error)
	// UserIDs releases the host's ids of a pod's user namespace.
	UserIDs interface{ Release(pod types.UID) error }
	Probes  *probe.Manager
	PLEG    PLEG
	// What tells of them.
	Statuses *status.Manager
	Events   Events
	Mirrors  Mirrors
	Tracer   *tracing.Tracer // nil traces nothing

	// NetworkError is why only pods in the host's network can be started; nil if all can.
	NetworkError func() error
	// Ending says that the pod is to end, or has.
	Ending func(pod types.UID) bool
	// Neighbours are the pods that hold resources of the node beside this one.
	Neighbours func(pod *core.Pod) []*core.Pod
	// Allocatable is what of the node pods may have, HostIPs are its addresses.
	Allocatable func() corev1.ResourceList
	HostIPs     func() []string
	// Begun is told of each pod that is synced for the first time, and when the reason for
	// that was seen; the time may be zero.
	Begun func(pod *core.Pod, seen time.Time)

	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Lifecycle does the steps of pods' lives. It is safe for concurrent use, except that
// for one pod only one step may run at a time.
type Lifecycle struct {
	Options
	records records
}

// New returns a Lifecycle.
func New(o Options) *Lifecycle { return &Lifecycle{Options: o} }

// tracePod starts the span of a sync of the pod, which contains the calls to the runtime
// and to the API server.
func (l *Lifecycle) tracePod(ctx context.Context, name string, pod *core.Pod) (context.Context, trace.Span) {
	return l.Tracer.Begin(ctx, name,
		attribute.String("k8s.pod", pod.Namespace+"/"+pod.Name), attribute.String("k8s.pod.uid", string(pod.UID)),
		attribute.String("k8s.pod.name", pod.Name), attribute.String("k8s.namespace.name", pod.Namespace))
}
