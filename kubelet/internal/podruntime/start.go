package podruntime

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
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
	one := &containerStart{Start: c}
	one.spec, one.fieldPath = s.spec(c)
	fieldPath, err := one.fieldPath, s.runContainer(one)
	if s.Started != nil && (err == nil || s.ctx.Err() == nil) {
		s.Started(fieldPath, reasonOf(err))
	}
	if err == nil {
		s.started(c.Name)
		return true
	}
	if noImage, ok := errors.AsType[*image.Error](err); ok {
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
	if failed, ok := errors.AsType[*startError](err); ok {
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
