package runtimeconfig

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"kctl/kubelet/internal/podfiles"
)

// terminationMount gives the container a file for its termination message, one
// for each start; every user in the container may write to it.
func (m *Maker) terminationMount(c *Container) (*Mount, error) {
	if c.Spec.TerminationMessagePath == "" {
		return nil, nil
	}
	dir := podfiles.MessageDir(m.RootDir, c.Pod.UID, c.Spec.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the container's directory: %w", err)
	}
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails, says its documentation
	path := filepath.Join(dir, hex.EncodeToString(id))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("making the container's termination message file: %w", err)
	}
	// Once more, because the process's umask cleared some bits.
	err = f.Chmod(0o666)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("making the container's termination message file: %w", err)
	}
	return &Mount{ContainerPath: c.Spec.TerminationMessagePath, HostPath: path, SELinuxRelabel: true}, nil
}
