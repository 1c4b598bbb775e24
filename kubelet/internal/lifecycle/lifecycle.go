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

// Events writes events about pods.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
	// StartPod notes that a pod is being started, until the returned function is called.
	StartPod() (started func())
}

// Mirrors creates and deletes the mirror pods of static pods.
type Mirrors interface {
	EnsureMirror(pod *core.Pod)
	Retire(pod *core.Pod)
}

// Volumes mounts and unmounts pods' volumes.
type Volumes interface {
	Mount(ctx context.Context, pod *core.Pod) error
	Mounts(ctx context.Context, pod *core.Pod, c *core.Container, env map[string]string) ([]runtimeconfig.Mount, error)
	Unmount(ctx context.Context, pod types.UID) error
	RemovePodDir(ctx context.Context, pod types.UID) error
}

// PLEG relists pods from the runtime.
type PLEG interface {
	RelistSoon()
	RequestReinspect(pod types.UID)
}

// Options are the rooms that a pod passes through.
type Options struct {
	RootDir    string // where pods/UID/ is made: /var/lib/kubelet
	PodLogsDir string // /var/log/pods

	// Rooms that know about pods.
	Pods        *podmanager.Manager
	Cache       *podcache.Cache
	State       *runtimestate.Reader
	Allocations *allocation.Manager
	// RecordGrants has what the Allocations know outlive the kubelet from now on.
	RecordGrants func()
	// Rooms that act on pods.
	Runtime *podruntime.Manager
	Cgroups *cgroup.Manager
	Objects *objects.Objects
	Volumes Volumes
	// ReadFile reads a file of one of a pod's own volumes; nil if containers can't
	// write any.
	ReadFile func(pod *core.Pod, volume, path string) ([]byte, error)
	// UserIDs releases the host ids of a pod's user namespace.
	UserIDs interface{ Release(pod types.UID) error }
	Probes  *probe.Manager
	PLEG    PLEG
	// Rooms that report on pods.
	Statuses *status.Manager
	Events   Events
	Mirrors  Mirrors
	Tracer   *tracing.Tracer // nil traces nothing

	// NetworkError returns why only pods with the host's network can start; nil if
	// all can.
	NetworkError func() error
	// Ending reports whether the pod is ending or has ended.
	Ending func(pod types.UID) bool
	// OtherPods returns the other pods that hold resources of the node.
	OtherPods func(pod *core.Pod) []*core.Pod
	// Allocatable returns the resources of the node that pods may use, HostIPs its
	// addresses.
	Allocatable func() corev1.ResourceList
	HostIPs     func() []string
	// Begun is called at a pod's first sync, with the time when its cause was
	// observed, which may be zero.
	Begun func(pod *core.Pod, seen time.Time)

	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Lifecycle runs the steps of pods' lives. It is safe for concurrent use, but
// only one step may run at a time for one pod.
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
