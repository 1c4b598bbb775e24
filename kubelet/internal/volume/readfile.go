package volume

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"kctl/proto/core"
)

// maxFile bounds what is read of a file that a pod wrote.
const maxFile = 1 << 20

// ReadFile reads a file in one of the pod's own directories (emptyDir).
// Whatever links the pod has made there, it never reads a file from elsewhere.
// Mount must have returned before.
func (m *Manager) ReadFile(pod *core.Pod, volume, path string) ([]byte, error) {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == volume && v.EmptyDir == nil {
			return nil, fmt.Errorf("volume %q is not an emptyDir", volume)
		}
	}
	root, err := os.OpenRoot(m.volumeDir(pod.UID, "emptyDir", volume))
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", volume, err)
	}
	defer root.Close()
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // nobody waits for the other end of a pipe
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", volume, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("volume %q: %s is not a file: %w", volume, path, fs.ErrInvalid)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", volume, err)
	}
	return data, nil
}
