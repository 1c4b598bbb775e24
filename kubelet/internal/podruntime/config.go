package podruntime

import (
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/proto/core"
	"kctl/proto/relay"
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
	// Configs makes the CRI configurations of sandboxes and containers.
	Configs *runtimeconfig.Maker
	Clock   clock.Clock
	Logger  *zap.Logger

	PodLogsDir string // /var/log/pods

	// HostIPs are the node's addresses, for pods in the host's network.
	HostIPs func() []string
	// RuntimeHandler resolves a RuntimeClass name; nil refuses pods with one.
	RuntimeHandler func(class string) (string, error)
	// MaxParallelPulls bounds the image pulls at one time; zero means 8.
	MaxParallelPulls int
	// Registries has the node's credentials for registries; may be nil.
	Registries image.NodeCredentials
	// ImageAccess says which pods may use present images; nil allows all.
	ImageAccess image.Access
	// ImageAsked, if not nil, is image.Options' Asked.
	ImageAsked func(policy corev1.PullPolicy, present, pull *bool)
	// ImageUsed, if not nil, is called with the id of each image that a container
	// is about to be created from.
	ImageUsed func(r image.Request, id string)
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
	// Restarting is told what becomes known of a container's restart, bit by bit. It must not block; may be nil.
	Restarting func(pod *core.Pod, known relay.Restart)
	// SandboxStarted is called with the time that starting a pod's sandbox took or
	// failed after, and its runtime handler. May be nil.
	SandboxStarted func(handler string, took time.Duration, err error)
	// Resized is called with the time that resizing a pod's running containers took or failed after. May be nil.
	Resized func(took time.Duration, done bool)
}
