package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podfiles"
	"kctl/kubelet/internal/volume/mount"
)

// Unmount removes the pod's volumes, and the contents of those that live only
// as long as the pod. None of the pod's containers may be left. It works for
// pods of an earlier kubelet too, and does nothing for those without volumes.
// If it fails it can be called again.
func (m *Manager) Unmount(ctx context.Context, uid types.UID) error {
	if p := m.unregister(uid); p != nil {
		if err := p.take(ctx); err != nil {
			return fmt.Errorf("waiting for the volumes of pod %s: %w", uid, err)
		}
		defer p.give()
	}
	m.config.Objects.Unregister(uid)
	began := m.config.Clock.Now()
	err := m.removeVolumes(uid)
	m.observeUnmount(uid, m.config.Clock.Since(began), err)
	if err != nil {
		return fmt.Errorf("taking away the volumes of pod %s: %w", uid, err)
	}
	m.forget(uid)
	return nil
}

func (m *Manager) removeVolumes(uid types.UID) error {
	for _, name := range []string{emptyDirMarks, "volume-subpaths", "volumes"} {
		if err := remove(filepath.Join(m.podDir(uid), name)); err != nil {
			return err
		}
	}
	return nil
}

// observeUnmount tells of each volume that this Manager made for the pod; all of a
// pod's are removed at once.
func (m *Manager) observeUnmount(uid types.UID, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil || m.config.Observe == nil {
		return
	}
	for _, made := range p.mounted {
		m.config.Observe(made.plugin, "volume_unmount", took, err)
	}
}

// unregister marks the pod so that nothing is mounted or refreshed any more.
func (m *Manager) unregister(uid types.UID) *podVolumes {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p != nil {
		p.gone = true
	}
	return p
}

func (m *Manager) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}

// remove removes dir, provided that nothing is mounted at or below it: that
// would belong to somebody else.
func remove(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := mount.UnmountBelow(dir); err != nil {
		return err
	}
	return removeAll(dir)
}

// Pods are the pods that have a directory on the node, of this kubelet or of
// an earlier one.
func (m *Manager) Pods() ([]types.UID, error) {
	entries, err := os.ReadDir(podfiles.PodsDir(m.config.RootDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for pods' directories: %w", err)
	}
	var pods []types.UID
	for _, entry := range entries {
		if entry.IsDir() {
			pods = append(pods, types.UID(entry.Name()))
		}
	}
	return pods, nil
}

// RemovePodDir removes the pod's volumes and everything else below its
// directory.
func (m *Manager) RemovePodDir(ctx context.Context, uid types.UID) error {
	if uid == "" || filepath.Base(string(uid)) != string(uid) || uid == "." || uid == ".." {
		return fmt.Errorf("pod uid %q can't be used as a directory name", uid)
	}
	if err := m.Unmount(ctx, uid); err != nil {
		return err
	}
	if err := remove(m.podDir(uid)); err != nil {
		return fmt.Errorf("removing the directory of pod %s: %w", uid, err)
	}
	return nil
}
