package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/shutdown"
	"kctl/proto/backoff"
	"kctl/proto/daemon"
)

// How often the runtime is asked how it is: while it is well, and while not.
const (
	healthEvery    = 2 * time.Second
	unhealthyEvery = 300 * time.Millisecond
	healthTimeout  = 10 * time.Second
	firstLogAfter  = 3 // failed attempts at start
	maxImageNames  = 5
)

// runtimeHealth knows how the container runtime is.
type runtimeHealth struct {
	cri     *cri.Client
	clock   clock.Clock
	logger  *zap.Logger
	changed func()

	mu       sync.RWMutex
	version  string
	features node.RuntimeFeatures
	learn    func(*runtimeapi.StatusResponse)
	runtime  error // why nothing works
	network  error // why only pods in the host's network work
}

func newRuntimeHealth(c *cri.Client, clock clock.Clock, logger *zap.Logger) *runtimeHealth {
	return &runtimeHealth{cri: c, clock: clock, logger: logger, changed: func() {}, runtime: errors.New("container runtime status check may not have completed yet")}
}

// wait asks until the runtime answers.
func (h *runtimeHealth) wait(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		h.look(ctx)
		err := h.runtimeError()
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
func (h *runtimeHealth) Run(ctx context.Context) error {
	for {
		wait := healthEvery
		if h.runtimeError() != nil || h.networkError() != nil {
			wait = unhealthyEvery
		}
		if err := backoff.Sleep(ctx, h.clock, wait); err != nil {
			return err
		}
		h.look(ctx)
	}
}

func (h *runtimeHealth) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	runtime, network := h.ask(ctx)
	h.mu.Lock()
	same := text(h.runtime) == text(runtime) && text(h.network) == text(network)
	h.runtime, h.network = runtime, network
	h.mu.Unlock()
	if !same {
		h.changed()
	}
}

func (h *runtimeHealth) ask(ctx context.Context) (runtime, network error) {
	answer, err := h.cri.Status(ctx, false)
	if err != nil {
		return fmt.Errorf("container runtime is down: %s", cri.Message(err)), nil
	}
	if h.RuntimeVersion() == "" || h.runtimeError() != nil {
		version, err := h.cri.Version(ctx)
		if err != nil {
			return fmt.Errorf("container runtime is down: %s", cri.Message(err)), nil
		}
		h.mu.Lock()
		h.version = version.GetRuntimeName() + "://" + version.GetRuntimeVersion()
		h.mu.Unlock()
	}
	h.mu.Lock()
	h.features = runtimeFeatures(answer)
	learn := h.learn
	h.mu.Unlock()
	if learn != nil {
		learn(answer)
	}
	conditions := answer.GetStatus().GetConditions()
	return unmet(conditions, runtimeapi.RuntimeReady, "container runtime not ready"),
		unmet(conditions, runtimeapi.NetworkReady, "container runtime network not ready")
}

// heard tells learn what the runtime says of itself, from now on.
func (h *runtimeHealth) heard(learn func(*runtimeapi.StatusResponse)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.learn = learn
}

// runtimeFeatures are what a runtime's status says of its handlers.
func runtimeFeatures(status *runtimeapi.StatusResponse) node.RuntimeFeatures {
	var features node.RuntimeFeatures
	for _, handler := range status.GetRuntimeHandlers() {
		one := corev1.NodeRuntimeHandler{Name: handler.GetName()}
		if f := handler.GetFeatures(); f != nil {
			one.Features = &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &f.RecursiveReadOnlyMounts, UserNamespaces: &f.UserNamespaces}
		}
		features.Handlers = append(features.Handlers, one)
	}
	slices.SortFunc(features.Handlers, func(a, b corev1.NodeRuntimeHandler) int { return cmp.Compare(a.Name, b.Name) })
	if f := status.GetFeatures(); f != nil {
		features.Node = &corev1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}
	}
	return features
}

func unmet(conditions []*runtimeapi.RuntimeCondition, name, what string) error {
	at := slices.IndexFunc(conditions, func(c *runtimeapi.RuntimeCondition) bool { return c.GetType() == name })
	if at < 0 {
		return fmt.Errorf("%s: it says nothing about %s", what, name)
	}
	if c := conditions[at]; !c.GetStatus() {
		return fmt.Errorf("%s: %s=false reason:%s message:%s", what, name, c.GetReason(), c.GetMessage())
	}
	return nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (h *runtimeHealth) runtimeError() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.runtime
}

func (h *runtimeHealth) networkError() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.network
}

// RuntimeVersion is name://version.
func (h *runtimeHealth) RuntimeVersion() string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.version
}

// Features are what the runtime said last that it can do.
func (h *runtimeHealth) Features() node.RuntimeFeatures {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.features
}

// nodeRuntime is what the node tells of the runtime.
type nodeRuntime struct{ k *Kubelet }

func (n nodeRuntime) RuntimeVersion() string { return n.k.health.RuntimeVersion() }

func (n nodeRuntime) Features() node.RuntimeFeatures { return n.k.health.Features() }

func (n nodeRuntime) NotReady() []string {
	var reasons []string
	if n.k.shutdown.ShuttingDown() {
		reasons = append(reasons, shutdown.NotReady)
	}
	errs := []error{n.k.health.runtimeError(), n.k.health.networkError()}
	if n.k.pleg != nil {
		errs = append(errs, n.k.pleg.Healthy())
	}
	for _, err := range errs {
		if err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return reasons
}

func (n nodeRuntime) Images(ctx context.Context) ([]corev1.ContainerImage, error) {
	images, err := n.k.cri.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]corev1.ContainerImage, 0, len(images))
	for _, image := range images {
		names := slices.Concat(image.GetRepoDigests(), image.GetRepoTags())
		listed = append(listed, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(image.GetSize())})
	}
	slices.SortFunc(listed, func(a, b corev1.ContainerImage) int {
		if a.SizeBytes != b.SizeBytes {
			return int(b.SizeBytes - a.SizeBytes)
		}
		return slices.Compare(a.Names, b.Names)
	})
	if most := int(n.k.config.MaxImages); most >= 0 {
		listed = listed[:min(len(listed), most)]
	}
	return listed, nil
}
