package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/volume/claim"
	"kctl/kubelet/internal/volume/hostpath"
	"kctl/kubelet/internal/volume/local"
	"kctl/proto/core"
)

// makeClaimed sets up the persistent volume that is bound to the claim of a pod's
// volume. Errors are in upstream's words, which depend on what failed.
func (m *Manager) makeClaimed(ctx context.Context, pod *core.Pod, spec *corev1.Volume) (*volume, error) {
	found, err := claim.Find(ctx, m.config.Objects, pod, spec)
	if err != nil {
		return &volume{},
			fmt.Errorf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], failed to process volumes=[%[1]s]: %w",
				spec.Name, err)
	}
	kind := kindOf(found.Spec.PersistentVolumeSource)
	made := &volume{plugin: pluginName(kind), persistent: found.Name, readOnly: claim.ReadOnly(spec), groups: claim.Groups(found)}
	failed := func(what string, err error) (*volume, error) {
		return made, fmt.Errorf("MountVolume.%s failed for volume %q : %w", what, found.Name, err)
	}
	if kind != "hostPath" && kind != "local" {
		return failed("FindPluginBySpec", fmt.Errorf("persistent volumes of the kind %s are not supported, only hostPath, local", kind))
	}
	if err := claim.CheckNode(found, m.config.Labels()); err != nil {
		return failed("NodeAffinity check", err)
	}
	options := claim.MountOptions(found)
	if kind == "hostPath" && len(options) > 0 {
		return failed("MountOptionSupport check", errors.New("mount options are not supported for this volume type"))
	}
	unlock, err := m.mounting.Lock(ctx, found.Name)
	if err != nil {
		return failed("SetUp", fmt.Errorf("waiting for another pod's mount: %w", err))
	}
	defer unlock()
	if claim.OncePod(found) && m.hasOther(pod.UID, found.Name) {
		return failed("SetUp", errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod"))
	}
	if kind == "hostPath" {
		made.path = found.Spec.HostPath.Path
		err = hostpath.SetUp(found.Spec.HostPath)
	} else {
		made.ours, made.path = true, filepath.Join(m.podDir(pod.UID), "volumes", local.Directory, found.Name)
		err = m.makeLocal(ctx, pod, made, found.Spec.Local.Path, options)
	}
	if err != nil {
		return failed("SetUp", err)
	}
	return made, nil
}

func (m *Manager) makeLocal(ctx context.Context, pod *core.Pod, made *volume, source string, options []string) error {
	if err := makeDirectories(m.podDir(pod.UID), made.path); err != nil {
		return err
	}
	one := local.Volume{
		Name:     made.persistent,
		Source:   source,
		ReadOnly: made.readOnly,
		Options:  options,
		Pods:     podfiles.PodsDir(m.config.RootDir),
		Clock:    m.config.Clock,
		Warn:     func(reason, message string) { m.config.Warn(pod, reason, message) },
	}
	return one.SetUp(ctx, pod, made.path)
}

// hasOther tells whether another pod has the persistent volume mounted.
func (m *Manager) hasOther(uid types.UID, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, p := range m.pods {
		if other == uid {
			continue
		}
		for _, v := range p.mounted {
			if v.persistent == name {
				return true
			}
		}
	}
	return false
}

// Groups are those whose members may use the pod's persistent volumes, as these say.
func (m *Manager) Groups(uid types.UID) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []int64
	if p := m.pods[uid]; p != nil {
		for _, v := range p.mounted {
			all = append(all, v.groups...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// claimDir is where a pod's claimed volume is mounted; "" if it is not, or is a
// path of the host.
func (m *Manager) claimDir(uid types.UID, name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil || p.mounted[name] == nil || !p.mounted[name].ours {
		return ""
	}
	return p.mounted[name].path
}

// Claimed is a claim whose volume is mounted in a directory of a pod.
type Claimed struct{ Namespace, Name, Dir string }

// Claimed returns all such claims, each once.
func (m *Manager) Claimed() []Claimed {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Claimed
	seen := map[types.NamespacedName]bool{}
	for _, p := range m.pods {
		if p.pod == nil {
			continue
		}
		for i := range p.pod.Spec.Volumes {
			spec := &p.pod.Spec.Volumes[i]
			name := types.NamespacedName{Namespace: p.pod.Namespace, Name: core.ClaimName(p.pod, spec)}
			if v := p.mounted[spec.Name]; v != nil && v.persistent != "" && v.ours && !seen[name] {
				seen[name] = true
				all = append(all, Claimed{name.Namespace, name.Name, v.path})
			}
		}
	}
	return all
}
