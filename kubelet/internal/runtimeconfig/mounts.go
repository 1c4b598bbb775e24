package runtimeconfig

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/hosts"
	"kctl/proto/core"
)

// Mount is one path of the host, or of an image, in a container.
type Mount struct {
	Volume        string // the name of the pod's volume, for errors
	ContainerPath string
	HostPath      string
	// ImageVolume, in place of HostPath, names the pod's volume that is an image,
	// and ImageSubPath the part of it to mount.
	ImageVolume, ImageSubPath string
	ReadOnly                  bool
	// Propagation is the API's value: None (also if empty), HostToContainer or
	// Bidirectional.
	Propagation corev1.MountPropagationMode
	// RecursiveReadOnly is the API's value; empty is Disabled.
	RecursiveReadOnly corev1.RecursiveReadOnlyMode
	SELinuxRelabel    bool
}

// mounts are the container's volumes, and the files that the kubelet keeps for
// it.
func (m *Maker) mounts(ctx context.Context, c *Container, env map[string]string) ([]*runtimeapi.Mount, error) {
	var mounts []Mount
	if c.Mounts != nil {
		var err error
		if mounts, err = c.Mounts(ctx, c.Spec, env); err != nil {
			return nil, err
		}
	} else if len(c.Spec.VolumeMounts) > 0 {
		return nil, fmt.Errorf("container %s mounts volumes, and nobody gives them", c.Spec.Name)
	}
	for _, file := range []func(*Container) (*Mount, error){m.hostsMount, m.terminationMount} {
		one, err := file(c)
		if err != nil {
			return nil, err
		}
		if one != nil {
			mounts = append(mounts, *one)
		}
	}
	out := make([]*runtimeapi.Mount, len(mounts))
	for i := range mounts {
		var err error
		if out[i], err = m.mount(c, &mounts[i]); err != nil {
			return nil, fmt.Errorf("mount %s: %w", mounts[i].ContainerPath, err)
		}
	}
	return out, nil
}

// hostsMount mounts the pod's hosts file, unless the container mounts something
// else there.
func (m *Maker) hostsMount(c *Container) (*Mount, error) {
	for _, v := range c.Spec.VolumeMounts {
		if filepath.Clean(v.MountPath) == hosts.Path {
			return nil, nil
		}
	}
	path, err := hosts.CreateFile(m.RootDir, c.Pod.UID)
	if err != nil {
		return nil, err
	}
	return &Mount{ContainerPath: hosts.Path, HostPath: path, SELinuxRelabel: true}, nil
}

// WriteHosts fills the pod's hosts file before a container that mounts it
// starts. Only one call may run at a time for one pod.
func (m *Maker) WriteHosts(pod *core.Pod, ips []string) error {
	return hosts.WriteFile(m.RootDir, m.ClusterDomain, pod, ips)
}

// mount is one path in the form for the runtime. If the pod has a user
// namespace of its own, the runtime maps the owners of what is mounted, so that
// they are the same in the container as on the host.
func (m *Maker) mount(c *Container, one *Mount) (*runtimeapi.Mount, error) {
	recursive, err := m.recursiveReadOnly(one, c.Handler)
	if err != nil {
		return nil, err
	}
	own := c.userNamespace()
	out := &runtimeapi.Mount{
		ContainerPath:     inContainer(one.ContainerPath),
		HostPath:          one.HostPath,
		Readonly:          one.ReadOnly,
		RecursiveReadOnly: recursive,
		SelinuxRelabel:    one.SELinuxRelabel,
		Propagation:       propagation(one.Propagation),
		UidMappings:       own.GetUids(),
		GidMappings:       own.GetGids(),
	}
	if one.ImageVolume != "" {
		present, ok := c.ImageVolumes[one.ImageVolume]
		if !ok {
			return nil, fmt.Errorf("the image of volume %q is not there", one.ImageVolume)
		}
		out.Image = &runtimeapi.ImageSpec{Image: present.Ref, RuntimeHandler: c.Handler}
		out.ImageSubPath = one.ImageSubPath
	}
	return out, nil
}

// recursiveReadOnly tells whether the runtime is to make a mount recursively
// read-only (KEP-3857). Errors are in upstream's words.
func (m *Maker) recursiveReadOnly(one *Mount, handler string) (bool, error) {
	impossible := func(why string) error {
		return fmt.Errorf("failed to resolve recursive read-only mode: volume %q requested recursive read-only mode, but %s", one.Volume, why)
	}
	can := m.handlerFeatures(handler).GetRecursiveReadOnlyMounts()
	switch one.RecursiveReadOnly {
	case "", corev1.RecursiveReadOnlyDisabled:
		return false, nil
	case corev1.RecursiveReadOnlyIfPossible:
		return one.ReadOnly && can, nil
	case corev1.RecursiveReadOnlyEnabled:
		if !one.ReadOnly {
			return false, impossible("it is not read-only")
		}
		if !can {
			return false, impossible("it is not supported by the runtime")
		}
		return true, nil
	}
	return false, fmt.Errorf("recursiveReadOnly %q is not supported", one.RecursiveReadOnly)
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

// inContainer is a mount path in the form that the runtime needs: absolute.
func inContainer(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}
