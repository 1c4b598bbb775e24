package podruntime

import (
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/proto/core"
)

// Events receives messages for users in a pod's event list.
type Events interface {
	Eventf(obj runtime.Object, eventType, reason, format string, args ...any)
	ContainerEventf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any)
}

// Config is what a Manager is made of. All functions may be called from
// several goroutines at once.
type Config struct {
	Events Events
	// Environment makes containers' environments.
	Environment *environment.Sources
	Clock       clock.Clock
	Logger      *zap.Logger

	RootDir    string // where pods/UID/ is made: /var/lib/kubelet
	PodLogsDir string // /var/log/pods

	// HostIPs are the node's addresses, for pods in the host's network.
	HostIPs func() []string
	// CgroupParent returns the cgroup for a pod's sandbox and containers; nil or
	// "" leaves it to the runtime.
	CgroupParent func(pod *core.Pod) string
	// DNS gives a pod's resolver configuration; nil leaves it to the runtime.
	DNS func(pod *core.Pod) (*runtimeapi.DNSConfig, error)
	// RuntimeHandler resolves a RuntimeClass name; nil refuses pods with one.
	RuntimeHandler func(class string) (string, error)
	// UserIDs returns the host's ids for a pod with a user namespace of its own;
	// nil refuses such pods.
	UserIDs func(pod types.UID) (first, count uint32, err error)
	// ClusterDomain completes the FQDN of pods with a subdomain.
	ClusterDomain string
	// SeccompRoot is where Localhost profiles are: RootDir/seccomp.
	SeccompRoot string
	// SeccompDefault gives containers that name no profile the runtime's default one.
	SeccompDefault bool
	// NoCPUQuota does not enforce cpu limits.
	NoCPUQuota bool
	// OOMTogether makes the kernel kill all of a container's processes instead of one
	// when it is out of memory (cgroup v2).
	OOMTogether bool
	// MaxParallelPulls bounds the image pulls at one time; zero means 8.
	MaxParallelPulls int
	// Registries has the node's credentials for registries; may be nil.
	Registries image.Node
	// ImageAccess says which pods may use present images; nil allows all.
	ImageAccess image.Access
	// ImageUsed, if not nil, is called with the id of each image that a container
	// is about to be created from.
	ImageUsed func(id string)
	// MaxContainerBackOff bounds the crash back-off; zero means 300 s.
	MaxContainerBackOff time.Duration
	// Count, if not nil, is called for things that metrics count. It must not block.
	Count func(what Counted)
	// Started is called for each container that was started (reason is empty) or could not
	// be; ImagePulled for each successful pull, and ImageFetched for each attempt. All may
	// be nil.
	Started      func(fieldPath, reason string)
	ImagePulled  func(took time.Duration, size uint64)
	ImageFetched func(pod types.UID, from, to time.Time)
	// SandboxStarted is called with the time that starting a pod's sandbox took or
	// failed after, and its runtime handler. May be nil.
	SandboxStarted func(handler string, took time.Duration, err error)
}
