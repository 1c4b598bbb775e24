package runtimeconfig

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/image"
	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Container is what a container's configuration depends on.
type Container struct {
	environment.Container
	Restarts int32
	// Sandbox is the configuration of the pod's sandbox, Handler its runtime handler.
	Sandbox *runtimeapi.PodSandboxConfig
	Handler string
	// Image is the container's; ImageVolumes are the images of its pod's image
	// volumes, by volume.
	Image        image.Present
	ImageVolumes map[string]image.Present
	// TargetID is the container whose processes an ephemeral container sees; ""
	// for none.
	TargetID string
	// Mounts gives the container's volume mounts, with subPath and subPathExpr (by the
	// container's environment) resolved; nil if there are no volumes.
	Mounts func(ctx context.Context, container *core.Container, env map[string]string) ([]Mount, error)
}

// Container makes a container's configuration, and the files that it refers to.
func (m *Maker) Container(ctx context.Context, c Container) (*runtimeapi.ContainerConfig, error) {
	if err := checkSupported(c.Spec); err != nil {
		return nil, err
	}
	security, err := m.containerSecurity(&c)
	if err != nil {
		return nil, err
	}
	env, err := m.Environment.Build(ctx, c.Container)
	if err != nil {
		return nil, err
	}
	command, commandErr := env.ExpandAll(c.Spec.Command)
	args, argsErr := env.ExpandAll(c.Spec.Args)
	if err := cmp.Or(commandErr, argsErr); err != nil {
		return nil, err
	}
	mounts, err := m.mounts(ctx, &c, env.Values())
	if err != nil {
		return nil, err
	}
	logPath, err := c.makeLogDirectory()
	if err != nil {
		return nil, err
	}
	stop, err := stopSignal(c.Spec)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Spec.Name, Attempt: uint32(c.Restarts)},
		Image:       &runtimeapi.ImageSpec{Image: c.Image.Ref, UserSpecifiedImage: c.Spec.Image, RuntimeHandler: c.Handler},
		Command:     command,
		Args:        args,
		WorkingDir:  c.Spec.WorkingDir,
		Envs:        env.KeyValues(),
		Mounts:      mounts,
		Labels:      runtimestate.ContainerLabels(c.Pod, c.Spec),
		Annotations: runtimestate.ContainerAnnotations(c.Pod, c.Spec, c.Restarts),
		LogPath:     logPath,
		Stdin:       c.Spec.Stdin,
		StdinOnce:   c.Spec.StdinOnce,
		Tty:         c.Spec.TTY,
		StopSignal:  stop,
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: m.Resources(c.Pod, c.Spec), SecurityContext: security},
	}, nil
}

// containerSecurity is the security context, with the namespaces that the sandbox and
// an ephemeral container's target determine.
func (m *Maker) containerSecurity(c *Container) (*runtimeapi.LinuxContainerSecurityContext, error) {
	security, err := m.linuxSecurity(c.Pod, c.Spec, c.Image)
	if err != nil {
		return nil, err
	}
	security.NamespaceOptions.UsernsOptions = c.userNamespace()
	if c.TargetID != "" {
		security.NamespaceOptions.Pid, security.NamespaceOptions.TargetId = runtimeapi.NamespaceMode_TARGET, c.TargetID
	}
	return security, nil
}

// makeLogDirectory makes the directory of the container's log, and returns the log's
// path in the sandbox's directory.
func (c *Container) makeLogDirectory() (logPath string, err error) {
	logPath = podfiles.LogPath(c.Spec.Name, c.Restarts)
	if err := os.MkdirAll(filepath.Join(c.Sandbox.LogDirectory, filepath.Dir(logPath)), 0o755); err != nil {
		return "", fmt.Errorf("making the container's log directory: %w", err)
	}
	return logPath, nil
}

// userNamespace returns the sandbox's user namespace.
func (c *Container) userNamespace() *runtimeapi.UserNamespace {
	return c.Sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
}

// signalNames turn the API's names of signals, such as SIGRTMIN+1, into the runtime's.
var signalNames = strings.NewReplacer("+", "PLUS", "-", "MINUS")

// stopSignal returns the signal that stops the container; 0 if its image
// determines it.
func stopSignal(c *core.Container) (runtimeapi.Signal, error) {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return 0, nil
	}
	signal, known := runtimeapi.Signal_value["SIGNAL_"+signalNames.Replace(string(*c.Lifecycle.StopSignal))]
	if !known {
		return 0, fmt.Errorf("lifecycle.stopSignal %q is not supported", *c.Lifecycle.StopSignal)
	}
	return runtimeapi.Signal(signal), nil
}

// checkSupported names what a container asks for and cannot have here.
func checkSupported(c *core.Container) error {
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
