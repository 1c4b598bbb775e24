package podruntime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// containerConfig makes a container's configuration for the runtime.
func (s *podSync) containerConfig(start podactions.Start, c *core.Container, present image.Present, volumes map[string]image.Present, restarts int32) (*runtimeapi.ContainerConfig, error) {
	if err := refuse(c); err != nil {
		return nil, err
	}
	security, err := s.linuxSecurity(s.pod, c, present)
	if err != nil {
		return nil, err
	}
	security.NamespaceOptions.UsernsOptions = s.config.Linux.SecurityContext.NamespaceOptions.UsernsOptions
	if err := s.target(start, security.NamespaceOptions); err != nil {
		return nil, err
	}
	env, err := s.Environment.Of(s.ctx, environment.Container{Pod: s.pod, Spec: c, PodIPs: s.ips.wait, ReadFile: s.options.ReadFile})
	if err != nil {
		return nil, err
	}
	command, err := env.ExpandAll(c.Command)
	if err != nil {
		return nil, err
	}
	args, err := env.ExpandAll(c.Args)
	if err != nil {
		return nil, err
	}
	mounts, err := s.mounts(c, env.Values(), volumes)
	if err != nil {
		return nil, err
	}
	logPath := podfiles.LogPath(c.Name, restarts)
	if err := os.MkdirAll(filepath.Join(s.config.LogDirectory, filepath.Dir(logPath)), 0o755); err != nil {
		return nil, fmt.Errorf("making the container's log directory: %w", err)
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(restarts)},
		Image:       &runtimeapi.ImageSpec{Image: present.Ref, UserSpecifiedImage: c.Image, RuntimeHandler: s.handler},
		Command:     command,
		Args:        args,
		WorkingDir:  c.WorkingDir,
		Envs:        env.KeyValues(),
		Mounts:      mounts,
		Labels:      runtimestate.ContainerLabels(s.pod, c),
		Annotations: runtimestate.ContainerAnnotations(s.pod, c, restarts),
		LogPath:     logPath,
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       s.containerResources(s.pod, c),
			SecurityContext: security,
		},
	}
	if c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		signal, known := runtimeapi.Signal_value[string(*c.Lifecycle.StopSignal)]
		if !known {
			return nil, fmt.Errorf("lifecycle.stopSignal %q is not supported", *c.Lifecycle.StopSignal)
		}
		config.StopSignal = runtimeapi.Signal(signal)
	}
	return config, nil
}

// refuse names what a container asks for and cannot have here.
func refuse(c *core.Container) error {
	if len(c.VolumeDevices) > 0 {
		return fmt.Errorf("volumeDevices (%s) are not supported by this kubelet", c.VolumeDevices[0].Name)
	}
	if len(c.Resources.Claims) > 0 {
		return fmt.Errorf("resources.claims (%s) are not supported by this kubelet", c.Resources.Claims[0].Name)
	}
	for _, rule := range c.RestartPolicyRules {
		switch rule.Action {
		case corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers:
		default:
			return fmt.Errorf("restartPolicyRules: action %s is not supported by this kubelet", rule.Action)
		}
	}
	return nil
}

// target lets an ephemeral container see the processes of the container that it
// debugs.
func (s *podSync) target(start podactions.Start, o *runtimeapi.NamespaceOption) error {
	if start.Kind != podactions.Ephemeral {
		return nil
	}
	name := s.pod.Spec.EphemeralContainers[start.Index].TargetContainerName
	if name == "" {
		return nil
	}
	target := s.current().Container(name)
	if target == nil || target.State != runtimestate.StateRunning {
		return fmt.Errorf("target container %q does not run", name)
	}
	o.Pid, o.TargetId = runtimeapi.NamespaceMode_TARGET, target.ID.ID
	return nil
}

// mounts are the container's volumes, and the files that the kubelet keeps for
// it.
func (s *podSync) mounts(c *core.Container, env map[string]string, volumes map[string]image.Present) ([]*runtimeapi.Mount, error) {
	var mounts []Mount
	if s.options.Mounts != nil {
		var err error
		if mounts, err = s.options.Mounts(s.ctx, c, env); err != nil {
			return nil, err
		}
	} else if len(c.VolumeMounts) > 0 {
		return nil, fmt.Errorf("container %s mounts volumes, and nobody gives them", c.Name)
	}
	hosts, err := s.hostsMount(s.pod, c)
	if err != nil {
		return nil, err
	}
	termination, err := s.terminationMount(s.pod, c)
	if err != nil {
		return nil, err
	}
	for _, m := range []*Mount{hosts, termination} {
		if m != nil {
			mounts = append(mounts, *m)
		}
	}
	out := make([]*runtimeapi.Mount, len(mounts))
	for i := range mounts {
		if out[i], err = s.mount(&mounts[i], volumes); err != nil {
			return nil, fmt.Errorf("mount %s: %w", mounts[i].ContainerPath, err)
		}
	}
	return out, nil
}

// mount is one path in the form for the runtime. If the pod has a user
// namespace of its own, the runtime maps the owners of what is mounted, so that
// they are the same in the container as on the host.
func (s *podSync) mount(m *Mount, volumes map[string]image.Present) (*runtimeapi.Mount, error) {
	recursive, err := s.recursiveReadOnly(m)
	if err != nil {
		return nil, err
	}
	own := s.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	out := &runtimeapi.Mount{
		ContainerPath:     inContainer(m.ContainerPath),
		HostPath:          m.HostPath,
		Readonly:          m.ReadOnly,
		RecursiveReadOnly: recursive,
		SelinuxRelabel:    m.SELinuxRelabel,
		Propagation:       propagation(m.Propagation),
		UidMappings:       own.GetUids(),
		GidMappings:       own.GetGids(),
	}
	if m.ImageVolume != "" {
		present, ok := volumes[m.ImageVolume]
		if !ok {
			return nil, fmt.Errorf("the image of volume %q is not there", m.ImageVolume)
		}
		out.Image = &runtimeapi.ImageSpec{Image: present.Ref, RuntimeHandler: s.handler}
		out.ImageSubPath = m.ImageSubPath
	}
	return out, nil
}

// recursiveReadOnly tells whether the runtime is to make a mount recursively
// read-only (KEP-3857).
func (s *podSync) recursiveReadOnly(m *Mount) (bool, error) {
	can := s.can().handlers[s.handler].GetRecursiveReadOnlyMounts()
	switch m.RecursiveReadOnly {
	case "", corev1.RecursiveReadOnlyDisabled:
		return false, nil
	case corev1.RecursiveReadOnlyIfPossible:
		return m.ReadOnly && can, nil
	case corev1.RecursiveReadOnlyEnabled:
		if !m.ReadOnly {
			return false, errors.New("recursiveReadOnly needs readOnly")
		}
		if !can {
			return false, errors.New("recursiveReadOnly is not supported by the container runtime")
		}
		return true, nil
	}
	return false, fmt.Errorf("recursiveReadOnly %q is not supported", m.RecursiveReadOnly)
}

func propagation(mode corev1.MountPropagationMode) runtimeapi.MountPropagation {
	switch mode {
	case corev1.MountPropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	case corev1.MountPropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	}
	return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
}
