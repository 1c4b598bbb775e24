package podruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/backoff"
)

const (
	// maxCrashBackOff is the longest wait before a failing container is restarted;
	// after a container has run for twice as long, its back-off starts from the
	// beginning.
	maxCrashBackOff     = 300 * time.Second
	initialCrashBackOff = 10 * time.Second
)

// Manager brings pods to what their specs ask for. It is safe for concurrent
// use, except that for one pod only one of SyncPod, KillPod and RemovePod may
// run at a time.
type Manager struct {
	Config
	runtime  *cri.Client
	state    *runtimestate.Reader
	images   *image.Manager
	memory   int64 // of the machine, in bytes
	swap     bool  // whether the memory controller accounts for swap
	crashes  *backoff.Keyed[containerKey]
	features atomic.Pointer[features]
	ends     *ends
}

// containerKey is one container of one pod in one version of its spec: a
// changed spec is not held back for the failures of the previous one.
type containerKey struct {
	pod  types.UID
	name string
	hash uint64
}

// New returns a Manager for the runtime, whose features it asks for.
func New(ctx context.Context, runtime *cri.Client, state *runtimestate.Reader, c Config) (*Manager, error) {
	if c.Events == nil || c.Clock == nil || c.Logger == nil || c.RootDir == "" || c.PodLogsDir == "" {
		return nil, errors.New("pod runtime: Events, Clock, Logger, RootDir and PodLogsDir must be given")
	}
	status, err := runtime.Status(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("asking the container runtime what it can: %w", err)
	}
	memory, err := machineMemory()
	if err != nil {
		return nil, err
	}
	if c.MaxContainerBackOff == 0 {
		c.MaxContainerBackOff = maxCrashBackOff
	}
	if c.HTTPClient == nil {
		c.HTTPClient = newHookClient()
	}
	m := &Manager{
		Config:  c,
		runtime: runtime,
		state:   state,
		images: image.New(image.Options{
			Runtime: runtime, Events: c.Events, Clock: c.Clock, Logger: c.Logger,
			Parallel: c.MaxParallelPulls, Node: c.Registries, Access: c.ImageAccess, Used: c.ImageUsed, Pulled: c.ImagePulled, Fetched: c.ImageFetched,
		}),
		memory: memory,
		swap:   swapAccounted(),
		crashes: backoff.NewKeyed[containerKey](backoff.Policy{
			Initial: min(initialCrashBackOff, c.MaxContainerBackOff),
			Max:     c.MaxContainerBackOff,
		}, c.Clock),
		ends: newEnds(c.MaxContainerBackOff),
	}
	m.Learn(status)
	return m, nil
}

// newHookClient is for httpGet hooks. Like upstream, it does not verify
// certificates: hooks reach a pod by its address, for which it has none.
func newHookClient() *http.Client {
	return &http.Client{
		Transport: hookTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a hook asks the pod, and nobody else
		},
	}
}
