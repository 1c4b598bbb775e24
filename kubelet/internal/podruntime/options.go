package podruntime

import (
	"context"
	"time"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// SyncOptions is what SyncPod needs besides the pod and its status.
type SyncOptions struct {
	// PullSecrets returns the pod's image pull secrets that exist; it is called when an
	// image is pulled. May be nil.
	PullSecrets func() []*core.Secret
	// Prepare, if set, runs beside RunPodSandbox: what must be done before the
	// first container can be created but needs no sandbox (volumes). If it
	// fails, no container is created and SyncPod returns its error.
	Prepare func(ctx context.Context) error
	// Mounts, if set, gives the container's volume mounts, with subPath and
	// subPathExpr (by the container's environment) resolved. It is called after
	// Prepare.
	Mounts func(ctx context.Context, container *core.Container, env map[string]string) ([]runtimeconfig.Mount, error)
	// ReadFile, if set, reads a file of one of the pod's own volumes. It is called
	// after Prepare.
	ReadFile func(volume, path string) ([]byte, error)
	// Probes, if set, returns the last probe results of a running container.
	Probes func(id runtimestate.ContainerID) podactions.ProbeResults
	// Resources, if set, records what containers run with, so that they can be
	// resized.
	Resources Resources
	// Changed, if set, is called with the pod's status as soon as SyncPod's own
	// calls change it: a sandbox is up, its IPs are known, a container runs. The
	// calls come in order, one at a time, from SyncPod's goroutines, and delay the
	// next change, but not the containers' start.
	Changed func(status *runtimestate.PodStatus)
}

// SyncResult is the result of a SyncPod.
type SyncResult struct {
	// Status is the status given to SyncPod, with what SyncPod did added.
	Status *runtimestate.PodStatus
	// Waiting says why each container that SyncPod wanted to start does not run;
	// an empty Reason means that it was started.
	Waiting map[string]runtimestate.Waiting
	// RetryAfter is when the soonest back-off ends; zero if none holds.
	RetryAfter time.Duration
	// Err joins the errors that should be retried. Containers held by back-off are
	// not errors.
	Err error
}
