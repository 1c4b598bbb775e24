// Package runtimehealth watches the container runtime: whether it and its
// network work, its version, and its features.
//
// New's caller is notified of changes. This room does nothing about an
// unhealthy runtime: those who need the runtime ask here first.
package runtimehealth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// How often the runtime's state is checked: while it is healthy, and while it is not.
const (
	healthEvery    = 2 * time.Second
	unhealthyEvery = 300 * time.Millisecond
	healthTimeout  = 10 * time.Second
	firstLogAfter  = 3 // failed attempts at start
)

// Health is the container runtime's state.
type Health struct {
	cri     *cri.Client
	clock   clock.Clock
	logger  *zap.Logger
	changed func()

	mu       sync.RWMutex
	version  string
	reported *runtimeapi.StatusResponse // the runtime's last status
	runtime  error                      // why no pod can start
	network  error                      // why only pods with the host's network can start
}

// New returns a Health. Wait and Run call changed when the runtime, or its network, has begun
// or ceased to work. Another reason why it does not is no such change: it may be another one
// each time.
func New(c *cri.Client, changed func(), clock clock.Clock, logger *zap.Logger) *Health {
	return &Health{
		cri:     c,
		changed: changed,
		clock:   clock,
		logger:  logger,
		runtime: errors.New("container runtime status check may not have completed yet"),
	}
}

// Wait asks until the runtime answers.
func (h *Health) Wait(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		h.look(ctx)
		err := h.RuntimeError()
		if err == nil {
			return nil
		}
		if attempt == firstLogAfter {
			h.logger.Warn("waiting for the container runtime", zap.Error(err))
			daemon.Waiting("the container runtime: "+err.Error(), h.logger)
		}
		if backoff.Sleep(ctx, h.clock, unhealthyEvery) != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Run keeps looking until ctx ends.
func (h *Health) Run(ctx context.Context) error {
	for {
		wait := healthEvery
		if h.RuntimeError() != nil || h.NetworkError() != nil {
			wait = unhealthyEvery
		}
		if err := backoff.Sleep(ctx, h.clock, wait); err != nil {
			return err
		}
		h.look(ctx)
	}
}

func (h *Health) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	runtime, network := h.ask(ctx)
	h.mu.Lock()
	same := (h.runtime == nil) == (runtime == nil) && (h.network == nil) == (network == nil)
	h.runtime, h.network = runtime, network
	h.mu.Unlock()
	if !same {
		h.changed()
	}
}

func (h *Health) ask(ctx context.Context) (runtime, network error) {
	answer, err := h.cri.Status(ctx, false)
	if err != nil {
		return fmt.Errorf("container runtime is down: %s", cri.Message(err)), nil
	}
	if h.RuntimeVersion() == "" || h.RuntimeError() != nil {
		version, err := h.cri.Version(ctx)
		if err != nil {
			return fmt.Errorf("container runtime is down: %s", cri.Message(err)), nil
		}
		h.mu.Lock()
		h.version = cri.Shorten(version.GetRuntimeName() + "://" + version.GetRuntimeVersion())
		h.mu.Unlock()
	}
	h.mu.Lock()
	h.reported = answer
	h.mu.Unlock()
	conditions := answer.GetStatus().GetConditions()
	return unmet(conditions, runtimeapi.RuntimeReady, "container runtime not ready"),
		unmet(conditions, runtimeapi.NetworkReady, "container runtime network not ready")
}

func unmet(conditions []*runtimeapi.RuntimeCondition, name, what string) error {
	at := slices.IndexFunc(conditions, func(c *runtimeapi.RuntimeCondition) bool { return c.GetType() == name })
	if at < 0 {
		return fmt.Errorf("%s: it does not report %s", what, name)
	}
	if c := conditions[at]; !c.GetStatus() {
		return fmt.Errorf("%s: %s=false reason:%s message:%s", what, name, cri.Shorten(c.GetReason()), cri.Shorten(c.GetMessage()))
	}
	return nil
}

// RuntimeError is why nothing works; nil if the runtime does.
func (h *Health) RuntimeError() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.runtime
}

// NetworkError is why only pods in the host's network work.
func (h *Health) NetworkError() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.network
}

// RuntimeVersion is name://version.
func (h *Health) RuntimeVersion() string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.version
}

// Reported returns the runtime's last status, which may be replaced at any
// time.
func (h *Health) Reported() *runtimeapi.StatusResponse {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.reported
}

// CheckImageVolumes says why the runtime can't provide a pod's image volumes. Runtimes that are
// too old would not report an error, but mount something else.
func (h *Health) CheckImageVolumes(pod *core.Pod) error {
	return checkImageVolumes(pod, h.RuntimeVersion())
}

func checkImageVolumes(pod *core.Pod, runtime string) error {
	name, version, _ := strings.Cut(runtime, "://")
	needed, known := map[string][2]int{"containerd": {2, 1}, "cri-o": {1, 31}}[name]
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil || !known {
		return nil // another runtime, or a custom build: it has to report errors itself
	}
	if major > needed[0] || major == needed[0] && minor >= needed[1] {
		return nil
	}
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Image != nil {
			return fmt.Errorf("volume %q: image volumes are not supported by the container runtime, %s %s; they need %d.%d or newer",
				pod.Spec.Volumes[i].Name, name, version, needed[0], needed[1])
		}
	}
	return nil
}
