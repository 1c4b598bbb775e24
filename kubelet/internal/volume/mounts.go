package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/environment"
	"kctl/kubelet/internal/runtimeconfig"
	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// Mounts are the paths of the pod's volumes in one of its containers, in the
// order of its spec. Mount must have returned before. variables is the
// container's environment, for subPathExpr.
func (m *Manager) Mounts(ctx context.Context, pod *core.Pod, container *core.Container,
	variables map[string]string) ([]runtimeconfig.Mount, error) {
	if len(container.VolumeMounts) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	p := m.pods[pod.UID]
	m.mu.Unlock()
	if p == nil {
		return nil, errors.New("the pod's volumes are not mounted")
	}
	if err := p.take(ctx); err != nil {
		return nil, fmt.Errorf("waiting for the pod's volumes: %w", err)
	}
	defer p.give()
	if m.isGone(p) {
		return nil, errors.New("the pod's volumes have been unmounted")
	}
	mounts := make([]runtimeconfig.Mount, 0, len(container.VolumeMounts))
	in := mounting{pod: pod, volumes: p, container: container, variables: variables}
	for i := range container.VolumeMounts {
		one, err := m.mountOf(in, i)
		if err != nil {
			spec := &container.VolumeMounts[i]
			return nil, fmt.Errorf("volumeMounts of %q at %s: %w", spec.Name, spec.MountPath, err)
		}
		mounts = append(mounts, one)
	}
	return mounts, nil
}

// mounting is the mounting of a pod's volumes into one container.
type mounting struct {
	pod       *core.Pod
	volumes   *podVolumes
	container *core.Container
	variables map[string]string // of its environment
}

// mountOf is the mount at index in the container's spec. A subPath of a directory
// is bound to a path of its own first.
func (m *Manager) mountOf(in mounting, index int) (runtimeconfig.Mount, error) {
	spec := &in.container.VolumeMounts[index]
	m.mu.Lock()
	v := in.volumes.mounted[spec.Name]
	m.mu.Unlock()
	if v == nil {
		return runtimeconfig.Mount{}, errors.New("the volume is not mounted")
	}
	subPath, err := subPathOf(spec, in.variables)
	if err != nil {
		return runtimeconfig.Mount{}, err
	}
	made := runtimeconfig.Mount{
		Volume:         spec.Name,
		ContainerPath:  spec.MountPath,
		HostPath:       v.path,
		ReadOnly:       spec.ReadOnly || v.readOnly,
		SELinuxRelabel: v.ours,

		Propagation:       ptr.Deref(spec.MountPropagation, ""),
		RecursiveReadOnly: ptr.Deref(spec.RecursiveReadOnly, ""),
	}
	switch {
	case v.image: // the runtime looks for the path in it
		made.HostPath, made.ImageVolume, made.ImageSubPath = "", spec.Name, subPath
	case subPath != "":
		target := filepath.Join(m.podDir(in.pod.UID), "volume-subpaths", spec.Name, in.container.Name, fmt.Sprint(index))
		if made.HostPath, err = bindSubPath(v.path, subPath, target); err != nil {
			return runtimeconfig.Mount{}, fmt.Errorf("failed to prepare subPath: %w", err)
		}
	}
	// The runtime knows only absolute paths; Windows' are not ours.
	if !filepath.IsAbs(made.ContainerPath) {
		made.ContainerPath = "/" + made.ContainerPath
	}
	return made, m.share(in.pod, &made)
}

// share sees to it that mounts in a volume of the pod's own can reach the host or come
// from there, where the container asks for it: runtimes refuse mounts that are nobody's
// peers. What the host has of its own, as in hostPath volumes, stays as it is.
func (m *Manager) share(pod *core.Pod, made *runtimeconfig.Mount) error {
	if made.Propagation == "" || made.Propagation == corev1.MountPropagationNone ||
		!strings.HasPrefix(made.HostPath, m.podDir(pod.UID)+string(filepath.Separator)) {
		return nil
	}
	return mount.MakeShared(made.HostPath)
}

// subPathOf is the path inside the volume, cleaned of everything that could
// lead out of it textually.
func subPathOf(spec *corev1.VolumeMount, variables map[string]string) (string, error) {
	subPath := spec.SubPath
	if spec.SubPathExpr != "" {
		var err error
		if subPath, err = expandPath(spec.SubPathExpr, variables); err != nil {
			return "", fmt.Errorf("failed to expand subPathExpr %q: %w", spec.SubPathExpr, err)
		}
	}
	if subPath == "" {
		return "", nil
	}
	if filepath.IsAbs(subPath) {
		return "", fmt.Errorf("subPath %q must not be an absolute path", subPath)
	}
	if slices.Contains(strings.Split(subPath, "/"), "..") {
		return "", fmt.Errorf("subPath %q must not contain '..'", subPath)
	}
	return filepath.Clean(subPath), nil
}

// expandPath expands the variables in a path. Unlike in a command, an unknown
// variable is an error: the path would not be the intended one.
func expandPath(text string, variables map[string]string) (string, error) {
	const longest = unix.PathMax - 1
	path, err := environment.Expand(text, longest, func(name string) (string, error) {
		value, known := variables[name]
		if !known {
			return "", fmt.Errorf("missing value for %q", name)
		}
		return value, nil
	})
	if errors.Is(err, environment.ErrTooLong) {
		return "", fmt.Errorf("the path has more than %d bytes", longest)
	}
	return path, err
}
