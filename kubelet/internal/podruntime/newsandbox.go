package podruntime

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// sandbox makes sure that the pod has one. While it is being made, the images
// of the containers that are to start in it are pulled, and whatever else they
// need is prepared; while these are created, the sandbox's addresses are asked
// for.
func (s *podSync) sandbox(a podactions.Actions) bool {
	if err := s.configureSandbox(a); err != nil {
		s.countSandbox(err)
		s.Events.Eventf(s.pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: %v", err)
		s.fail(err)
		return false
	}
	if s.prepared == nil {
		s.prepared = begin(&s.background, s.prepare)
	}
	s.pullImages(a)
	if !a.CreateSandbox {
		s.sandboxID = a.SandboxID
		if s.ips == nil {
			s.ips = known(s.podIPs(s.status.IPs))
		}
		return true
	}
	id, err := s.createSandbox()
	s.countSandbox(err)
	if err != nil {
		s.Events.Eventf(s.pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: %s", cri.GRPCMessage(err))
		s.fail(fmt.Errorf("creating the sandbox of pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err))
		return false
	}
	s.sandboxID = id
	s.ips = begin(&s.background, func() ([]string, error) { return s.inspectSandbox(id) })
	return true
}

// pullImages begins to pull what the containers that are to start need. In a sandbox that is
// there already it waits until they can start: a pod that lacks a secret for days, and is
// tried every two minutes, would use up what its registry lets anybody pull.
func (s *podSync) pullImages(a podactions.Actions) {
	for _, c := range due(a.Start) {
		if s.images[c.Name] != nil {
			continue
		}
		s.images[c.Name] = begin(&s.background, func() (image.Present, error) {
			if err := s.beforePull(a); err != nil {
				return image.Present{}, err
			}
			return s.ensureImage(c)
		})
		s.pullVolumes(a, c)
	}
}

func (s *podSync) beforePull(a podactions.Actions) error {
	if a.CreateSandbox {
		return nil
	}
	_, err := s.prepared.wait()
	return err
}

func (s *podSync) prepare() (struct{}, error) {
	if s.options.Prepare == nil {
		return struct{}{}, nil
	}
	return struct{}{}, s.options.Prepare(s.beside)
}

// configureSandbox makes the sandbox's configuration, which every container is
// created with too.
func (s *podSync) configureSandbox(a podactions.Actions) (err error) {
	attempt := a.Attempt
	if !a.CreateSandbox {
		attempt = s.status.Sandboxes[0].Attempt
	}
	if s.config != nil && s.config.Metadata.Attempt == attempt {
		return nil
	}
	if s.handler, err = s.runtimeHandler(s.pod); err != nil {
		return err
	}
	config, err := s.Configs.Sandbox(s.pod, attempt, s.handler)
	if err != nil {
		return err
	}
	s.config = config
	return nil
}

func (s *podSync) createSandbox() (string, error) {
	if err := os.MkdirAll(s.config.LogDirectory, 0o755); err != nil {
		return "", fmt.Errorf("making the pod's log directory: %w", err)
	}
	began := s.Clock.Now()
	id, err := s.runtime.RunPodSandbox(context.WithoutCancel(s.ctx), s.config, s.handler)
	if s.SandboxStarted != nil {
		s.SandboxStarted(s.handler, s.Clock.Since(began), err)
	}
	return id, err
}

// inspectSandbox reads the addresses of a new sandbox. One in the host's
// network has none of its own, so there is nothing to ask.
func (s *podSync) inspectSandbox(id string) ([]string, error) {
	box := &runtimestate.SandboxStatus{
		ID: id, Attempt: s.config.Metadata.Attempt, Ready: true,
		HostNetwork: s.pod.Spec.HostNetwork, CreatedAt: s.Clock.Now(),
	}
	var err error
	if !box.HostNetwork {
		var asked *runtimestate.SandboxStatus
		asked, err = s.state.Sandbox(context.WithoutCancel(s.ctx), id)
		switch {
		case asked != nil:
			box = asked
		case err == nil:
			err = fmt.Errorf("sandbox %s no longer exists", id)
		}
		if err == nil && len(box.IPs) == 0 {
			err = fmt.Errorf("the network gave sandbox %s no address", id)
		}
		if err != nil {
			// Known but not ready: the next sync makes another one.
			box.Ready = false
			s.fail(fmt.Errorf("asking for the addresses of pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err))
		}
	}
	s.publish(func(status *runtimestate.PodStatus) { status.Sandboxes = append(status.Sandboxes, box) })
	return s.podIPs(box.IPs), err
}

// podIPs are the pod's addresses as its containers see them.
func (s *podSync) podIPs(own []string) []string {
	if s.pod.Spec.HostNetwork && s.HostIPs != nil {
		return s.HostIPs()
	}
	return own
}

// runtimeHandler is the handler of the pod's RuntimeClass.
func (m *Manager) runtimeHandler(pod *core.Pod) (string, error) {
	class := pod.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	if m.RuntimeHandler == nil {
		return "", fmt.Errorf("runtimeClassName %q: runtime classes are not supported by this kubelet", *class)
	}
	return m.RuntimeHandler(*class)
}
