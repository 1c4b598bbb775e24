package podruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/loglinks"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
)

// containerStart is the start of one container. Each step fills in what the
// next one needs.
type containerStart struct {
	podactions.Start
	spec      *core.Container
	fieldPath string

	image   image.Present
	volumes map[string]image.Present // the image volumes, by name

	last     *runtimestate.ContainerStatus // the previous one; nil if there is none
	restarts int32
	config   *runtimeapi.ContainerConfig
	id       string
	created  time.Time
}

// runContainer waits for a container's images, creates it, and starts it.
func (s *podSync) runContainer(c *containerStart) error {
	if err := s.waitImages(c); err != nil {
		return err
	}
	c.last = s.current().Container(c.Name)
	c.restarts = s.restartCount(c.Name, c.last)
	imageThere := s.Clock.Now()
	if err := s.createContainer(c); err != nil {
		return err
	}
	s.tellCreated(c, imageThere)
	if err := s.startCreated(c); err != nil {
		s.refresh(c.id) // it was created, and its name is in use
		return err
	}
	return nil
}

func (s *podSync) waitImages(c *containerStart) (err error) {
	if c.image, err = s.images[c.Name].wait(); err != nil {
		return err
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if c.image.Found {
		s.Manager.images.TellFound(s.pod, c.fieldPath, c.spec.Image)
	}
	if c.volumes, err = s.waitVolumes(c.spec); err != nil {
		s.count(ImageVolumesFailed, 1)
	}
	return err
}

func (s *podSync) createContainer(c *containerStart) (err error) {
	if c.config, err = s.containerConfig(c); err != nil {
		return &startError{runtimestate.ReasonCreateContainerConfig, err}
	}
	err = s.turn(c, func() (err error) {
		if c.id, err = s.runtime.CreateContainer(context.WithoutCancel(s.ctx), s.sandboxID, c.config, s.config); err != nil {
			s.count(ImageVolumesFailed, len(c.volumes))
			return &startError{runtimestate.ReasonCreateContainer, err}
		}
		return nil
	})
	if err != nil {
		if _, asked := errors.AsType[*startError](err); asked { // here, where others don't wait for their turn
			s.findCreated(c.Name)
		}
		return err
	}
	s.count(ImageVolumesMounted, len(c.volumes))
	c.created = s.Clock.Now()
	s.Events.ContainerEventf(s.pod, c.fieldPath, corev1.EventTypeNormal, "Created", "Container created")
	return nil
}

// turn makes the call that creates a container when it is its turn. containerd mounts an image for all
// of a pod's containers in one place: of two at once, one finds the place taken, and the other may get
// the empty directory below.
func (s *podSync) turn(c *containerStart, create func() error) error {
	paced := func() error { return s.pace.do(s.ctx, create) }
	if len(c.volumes) == 0 {
		return paced()
	}
	return s.mounting.do(s.ctx, paced)
}

// containerConfig returns the container's CRI configuration.
func (s *podSync) containerConfig(c *containerStart) (*runtimeapi.ContainerConfig, error) {
	target, err := s.target(c.Start)
	if err != nil {
		return nil, err
	}
	return s.Configs.Container(s.ctx, runtimeconfig.Container{
		Container:    environment.Container{Pod: s.pod, Spec: c.spec, PodIPs: s.ips.wait, ReadFile: s.options.ReadFile},
		Restarts:     c.restarts,
		Sandbox:      s.config,
		Handler:      s.handler,
		Image:        c.image,
		ImageVolumes: c.volumes,
		TargetID:     target,
		Mounts:       s.options.Mounts,
	})
}

// target returns the id of the container whose processes an ephemeral container
// sees; "" for none.
func (s *podSync) target(c podactions.Start) (id string, err error) {
	if c.Kind != podactions.Ephemeral {
		return "", nil
	}
	name := s.pod.Spec.EphemeralContainers[c.Index].TargetContainerName
	if name == "" {
		return "", nil
	}
	target := s.current().Container(name)
	if target == nil || target.State != runtimestate.StateRunning {
		return "", fmt.Errorf("target container %q does not run", name)
	}
	return target.ID.ID, nil
}

// restartCount continues from the last container. If the runtime has lost all
// of them, the logs still show how many were started.
func (s *podSync) restartCount(name string, last *runtimestate.ContainerStatus) int32 {
	if last != nil {
		return last.RestartCount + 1
	}
	entries, err := os.ReadDir(filepath.Join(s.config.LogDirectory, name))
	if err != nil {
		return 0
	}
	next := 0
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), ".") // rotated: 0.log.20060102-150405
		if n, err := strconv.Atoi(number); err == nil && n >= next {
			next = n + 1
		}
	}
	return int32(next)
}

// startCreated starts a created container, runs its postStart hook, and adds it
// to the status.
func (s *podSync) startCreated(c *containerStart) error {
	ctx := context.WithoutCancel(s.ctx)
	if err := s.writeHosts(); err != nil {
		return &startError{runtimestate.ReasonRunContainer, err}
	}
	if c.last != nil {
		s.crashes.Fail(s.key(c.spec))
	}
	s.applied(c.spec) // before, so that it is not restarted for it again by a kubelet that follows this one's sudden end
	if err := s.pace.do(ctx, func() error { return s.runtime.StartContainer(ctx, c.id) }); err != nil {
		return &startError{runtimestate.ReasonRunContainer, err}
	}
	log := filepath.Join(s.config.LogDirectory, c.config.LogPath)
	if err := loglinks.Add(loglinks.Path(s.PodLogsDir, s.pod.Namespace, s.pod.Name, c.Name, c.id), log); err != nil {
		s.Logger.Warn("log of a container not linked", daemon.PodFields(s.pod), zap.String("container", c.Name), zap.Error(err))
	}
	now := &runtimestate.ContainerStatus{
		ID: s.state.ContainerID(c.id), SandboxID: s.sandboxID, Name: c.Name, State: runtimestate.StateRunning,
		CreatedAt: c.created, StartedAt: s.Clock.Now(), Image: c.image.Name, ImageID: c.image.Digest,
		RestartCount: c.restarts, Hash: runtimestate.HashContainer(c.spec), RecursiveReadOnly: runtimestate.RecursivePaths(c.config.Mounts),
	}
	s.tellRestart(relay.Restart{Container: c.Name, Number: c.restarts, Started: now.StartedAt})
	s.learnUser(ctx, now)
	s.Events.ContainerEventf(s.pod, c.fieldPath, corev1.EventTypeNormal, "Started", "Container started")
	if err := s.postStart(c, now.ID); err != nil {
		return err
	}
	s.publish(with(now))
	s.Logger.Info("container started", daemon.PodFields(s.pod),
		zap.String("container", c.Name), zap.String("id", c.id), zap.Int32("restarts", c.restarts))
	return nil
}

// writeHosts fills the pod's hosts file before a container that sees it starts.
func (s *podSync) writeHosts() error {
	ips, err := s.ips.wait()
	if err != nil {
		return fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	s.files.Lock()
	defer s.files.Unlock()
	return s.Configs.WriteHosts(s.pod, ips)
}

// learnUser asks a runtime that reports it for the user of the container's
// first process. If that fails, the next look at the pod shows it.
func (s *podSync) learnUser(ctx context.Context, now *runtimestate.ContainerStatus) {
	if !s.Configs.ReportsUsers() {
		return
	}
	if asked, err := s.state.Container(ctx, now.ID.ID, now.SandboxID); err == nil && asked != nil {
		now.User = asked.User
	}
}

// postStart runs the container's postStart hook, if it has one. If the hook fails, the container is
// stopped, unless the hook was cut short: the pod's end then ends the container within a grace period
// that is not known here, and a kubelet that stops leaves it running.
func (s *podSync) postStart(c *containerStart, id runtimestate.ContainerID) error {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PostStart == nil {
		return nil
	}
	err := s.hooks.Run(s.ctx, s.pod, c.spec, id, c.spec.Lifecycle.PostStart)
	if err == nil {
		return nil
	}
	s.Logger.Warn("postStart hook failed", daemon.PodFields(s.pod), zap.String("container", c.Name), zap.Error(err))
	// Without the error: what a hook prints is not for all who may read events.
	s.Events.ContainerEventf(s.pod, c.fieldPath, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	if s.ctx.Err() == nil {
		kill := podactions.Kill{ID: id, Name: c.Name, Message: "FailedPostStartHook"}
		if err := s.killContainer(s.ctx, s.pod, kill, ending{pace: newPace()}, nil); err != nil {
			s.fail(err)
		}
		if ended := s.look(id.ID); ended != nil && s.runsAgain(ended) {
			s.tellRestart(following(ended, relay.CausePostStart))
		}
	}
	return &startError{runtimestate.ReasonPostStartHook, fmt.Errorf("PostStartHook failed: %w", err)}
}
