package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// findMounts finds the hierarchies of cgroup v1, by their controllers, once,
// because looking for them costs more than everything that is done in them. It
// returns nil if there is only one hierarchy, or if systemd makes groups.
func findMounts(names naming) (map[string]string, error) {
	if names.systemd || cgroups.IsCgroup2UnifiedMode() {
		return nil, nil
	}
	place := names.place(podsGroup, &cgroups.Resources{SkipDevices: true})
	g, err := manager.New(place)
	if err != nil {
		return nil, err
	}
	mounts := map[string]string{}
	for controller, dir := range g.GetPaths() {
		mount, ok := strings.CutSuffix(dir, place.Path)
		if !ok {
			return nil, nil // it is not where it is asked for
		}
		mounts[controller] = mount
	}
	return mounts, nil
}

// group makes, sets and removes the group of a name.
func (m *Manager) group(name string, r *cgroups.Resources) (cgroups.Manager, error) {
	if r == nil {
		r = &cgroups.Resources{SkipDevices: true}
	}
	place := m.naming.place(name, r)
	if m.mounts == nil {
		return manager.New(place)
	}
	dirs := map[string]string{} // the manager keeps it
	for controller, mount := range m.mounts {
		dirs[controller] = mount + place.Path
	}
	return manager.NewWithPaths(place, dirs)
}

// dirs are a group's, each once: a hierarchy may have several controllers.
func (m *Manager) dirs(name string) ([]string, error) {
	g, err := m.group(name, nil)
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(maps.Values(g.GetPaths()))), nil
}

// Pods are the pods that have a group, by class. Only the first time it looks
// into all hierarchies, for what others have left in some of them: this
// Manager's own groups are in all, and it knows those that it could not make or
// remove. But systemd removes empty groups in hierarchies that it has no use
// for.
func (m *Manager) Pods() (map[types.UID]corev1.PodQOSClass, error) {
	if !m.PerQOS {
		return map[types.UID]corev1.PodQOSClass{}, nil
	}
	m.incomplete.Lock()
	defer m.incomplete.Unlock()
	pods, err := m.listed(m.incomplete.pods == nil || m.naming.systemd)
	if err != nil {
		return nil, err
	}
	if m.incomplete.pods == nil {
		m.incomplete.pods = map[types.UID]corev1.PodQOSClass{}
	}
	maps.Copy(pods, m.incomplete.pods)
	return pods, nil
}

// listed are the pods that have a group in any hierarchy, or in the first.
func (m *Manager) listed(everywhere bool) (map[types.UID]corev1.PodQOSClass, error) {
	pods := map[types.UID]corev1.PodQOSClass{}
	for group, class := range map[string]corev1.PodQOSClass{
		podsGroup:                             corev1.PodQOSGuaranteed,
		path.Join(podsGroup, burstableGroup):  corev1.PodQOSBurstable,
		path.Join(podsGroup, bestEffortGroup): corev1.PodQOSBestEffort,
	} {
		dirs, err := m.dirs(group)
		if err != nil {
			return nil, err
		}
		if !everywhere {
			dirs = dirs[:min(1, len(dirs))]
		}
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("listing control groups: %w", err)
			}
			for _, e := range entries {
				if uid, ok := m.naming.pod(group, e.Name()); ok && e.IsDir() {
					pods[uid] = class
				}
			}
		}
	}
	return pods, nil
}
