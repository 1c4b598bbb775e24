package podruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/loglinks"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

func (s *podSync) ensureImage(c podactions.Start) (image.Present, error) {
	spec, fieldPath := s.spec(c)
	return s.Manager.images.Ensure(s.beside, image.Request{
		Pod: s.pod, FieldPath: fieldPath, Image: spec.Image, Policy: spec.ImagePullPolicy,
		Secrets: s.options.PullSecrets, Sandbox: s.config, Handler: s.handler,
	})
}

// startError is why a container was not started: its waiting reason and a
// message for the user.
type startError struct {
	reason string
	err    error
}

func (e *startError) Error() string { return e.reason + ": " + e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// startContainer brings one container from its image to running, including its
// postStart hook.
func (s *podSync) startContainer(c podactions.Start) bool {
	spec, fieldPath := s.spec(c)
	err := s.runContainer(c, spec, fieldPath)
	if s.Started != nil && (err == nil || s.ctx.Err() == nil) {
		s.Started(fieldPath, reasonOf(err))
	}
	if err == nil {
		s.started(c.Name)
		return true
	}
	var noImage *image.Error
	if errors.As(err, &noImage) {
		if s.ctx.Err() == nil {
			s.Events.ContainerEventf(s.pod, fieldPath, corev1.EventTypeWarning, "Failed", "Error: %s", noImage.Reason)
		}
		s.wait(c.Name, noImage.Reason, noImage.Message, noImage.RetryAfter)
		if noImage.Err != nil {
			s.fail(fmt.Errorf("container %s: %w", c.Name, err))
		}
		return false
	}
	s.fail(fmt.Errorf("container %s of pod %s/%s: %w", c.Name, s.pod.Namespace, s.pod.Name, err))
	var failed *startError
	if errors.As(err, &failed) {
		message := cri.Message(failed.err)
		if failed.reason != runtimestate.ReasonPostStartHook { // which has an event of its own
			s.Events.ContainerEventf(s.pod, fieldPath, corev1.EventTypeWarning, "Failed", "Error: %s", message)
		}
		s.wait(c.Name, failed.reason, message, 0)
	}
	return false
}

// reasonOf is why a container was not started, in a word; empty if it was.
func reasonOf(err error) string {
	var noImage *image.Error
	var failed *startError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &noImage):
		return noImage.Reason
	case errors.As(err, &failed):
		return failed.reason
	}
	return "Unknown"
}

func (s *podSync) runContainer(c podactions.Start, spec *core.Container, fieldPath string) error {
	present, err := s.images[c.Name].wait()
	if err != nil {
		return err
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	volumes, err := s.waitVolumes(spec)
	if err != nil {
		s.count(ImageVolumesFailed, 1)
		return err
	}
	last := s.current().Container(c.Name)
	restarts := s.restartCount(c.Name, last)
	config, err := s.containerConfig(c, spec, present, volumes, restarts)
	if err != nil {
		return &startError{runtimestate.ReasonCreateContainerConfig, err}
	}
	ctx := context.WithoutCancel(s.ctx)
	id, err := s.runtime.CreateContainer(ctx, s.sandboxID, config, s.config)
	if err != nil {
		s.count(ImageVolumesFailed, len(volumes))
		return &startError{runtimestate.ReasonCreateContainer, err}
	}
	s.count(ImageVolumesMounted, len(volumes))
	created := s.Clock.Now()
	s.Events.ContainerEventf(s.pod, fieldPath, corev1.EventTypeNormal, "Created", "Container created")
	if err := s.writeHosts(); err != nil {
		return &startError{runtimestate.ReasonRunContainer, err}
	}
	if last != nil {
		s.crashes.Fail(s.key(spec))
	}
	if err := s.runtime.StartContainer(ctx, id); err != nil {
		s.refresh(id) // it exists, and its name is taken
		return &startError{runtimestate.ReasonRunContainer, err}
	}
	log := filepath.Join(s.config.LogDirectory, config.LogPath)
	if err := loglinks.Add(loglinks.Path(s.PodLogsDir, s.pod.Namespace, s.pod.Name, c.Name, id), log); err != nil {
		s.Logger.Warn("log of a container not linked", daemon.PodFields(s.pod), zap.String("container", c.Name), zap.Error(err))
	}
	s.applied(spec)
	now := &runtimestate.ContainerStatus{
		ID: s.state.ContainerID(id), SandboxID: s.sandboxID, Name: c.Name, State: runtimestate.StateRunning,
		CreatedAt: created, StartedAt: s.Clock.Now(), Image: present.Name, ImageID: present.Digest,
		RestartCount: restarts, Hash: runtimestate.HashContainer(spec), RecursiveReadOnly: runtimestate.RecursivePaths(config.Mounts),
	}
	s.learnUser(ctx, now)
	s.Events.ContainerEventf(s.pod, fieldPath, corev1.EventTypeNormal, "Started", "Container started")
	if spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil {
		if err := s.postStart(spec, fieldPath, now.ID); err != nil {
			s.refresh(id)
			return err
		}
	}
	s.publish(with(now))
	s.Logger.Info("container started", daemon.PodFields(s.pod),
		zap.String("container", c.Name), zap.String("id", id), zap.Int32("restarts", restarts))
	return nil
}

// containerConfig is what the runtime is told of the container.
func (s *podSync) containerConfig(c podactions.Start, spec *core.Container, present image.Present, volumes map[string]image.Present, restarts int32) (*runtimeapi.ContainerConfig, error) {
	target, err := s.target(c)
	if err != nil {
		return nil, err
	}
	return s.Configs.Container(s.ctx, runtimeconfig.Container{
		Container: environment.Container{Pod: s.pod, Spec: spec, PodIPs: s.ips.wait, ReadFile: s.options.ReadFile},
		Restarts:  restarts, Sandbox: s.config, Handler: s.handler, Image: present, ImageVolumes: volumes, TargetID: target, Mounts: s.options.Mounts,
	})
}

// target is the container that an ephemeral one debugs, whose processes it sees; ""
// for none.
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

// postStart runs the container's hook; a container whose hook fails is ended.
func (s *podSync) postStart(spec *core.Container, fieldPath string, id runtimestate.ContainerID) error {
	err := s.hooks.Run(s.ctx, s.pod, spec, id, spec.Lifecycle.PostStart)
	if err == nil {
		return nil
	}
	s.Events.ContainerEventf(s.pod, fieldPath, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed: %v", err)
	kill := podactions.Kill{ID: id, Name: spec.Name, Message: "FailedPostStartHook"}
	if err := s.killContainer(context.WithoutCancel(s.ctx), s.pod, kill, nil, nil); err != nil {
		s.fail(err)
	}
	return &startError{runtimestate.ReasonPostStartHook, fmt.Errorf("PostStartHook failed: %w", err)}
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
