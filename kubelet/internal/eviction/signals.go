package eviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/filesystem"
)

// Observation is how much there is of a resource, and how much of it is left.
type Observation struct {
	Available, Capacity int64
	Apart               Apart // of a disk
}

// Apart says what is on another disk than volumes and logs: mostly both or neither, but CRI-O
// can keep images apart and what containers write on the node's (KEP-4191).
type Apart struct{ Images, Layers bool }

// Machine looks at the machine that the kubelet runs on.
type Machine struct {
	RootDir string // on the node's file system
	// Memory gives how many bytes of memory are left, and how many there are.
	Memory func() (available, capacity int64, err error)
	// PodsMemory gives the same for the memory of pods; nil if nothing limits them together.
	PodsMemory func() (available, capacity int64, err error)
	// Processes gives how many tasks there are, and how many there may be; 0 for unknown.
	Processes func() (now, most uint64)
	// ImageFS says where the runtime keeps images.
	ImageFS func(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
}

// imageFSWithin is how long the runtime may take to say where it keeps images: meanwhile
// nobody sees that the node is short of something else.
const imageFSWithin = 5 * time.Second

// Observe reads all signals. What a file system does not count (inodes, on
// some) is left out, and the runtime's file system while the runtime is away.
// What can't be read is left out, too, and the error says why.
func (m Machine) Observe(ctx context.Context) (map[Signal]Observation, error) {
	seen := map[Signal]Observation{}
	unknown := []error{
		observe(seen, MemoryAvailable, m.Memory),
		observeDisk(seen, m.RootDir, NodeFSAvailable, NodeFSInodesFree),
	}
	if m.PodsMemory != nil {
		unknown = append(unknown, observe(seen, PodsMemoryAvailable, m.PodsMemory))
	}
	asking, cancel := context.WithTimeout(ctx, imageFSWithin)
	defer cancel()
	if info, err := m.ImageFS(asking); err == nil && len(info.GetImageFilesystems()) > 0 {
		path := info.GetImageFilesystems()[0].GetFsId().GetMountpoint()
		err := observeDisk(seen, path, ImageFSAvailable, ImageFSInodesFree)
		if err == nil {
			of := Apart{Images: apart(m.RootDir, path), Layers: apart(m.RootDir, layersPath(info))}
			for signal, o := range seen {
				if conditions[signal] == corev1.NodeDiskPressure {
					o.Apart = of
					seen[signal] = o
				}
			}
		}
		unknown = append(unknown, err)
	}
	if now, most := m.Processes(); most > 0 {
		seen[PIDAvailable] = Observation{Available: int64(most) - int64(now), Capacity: int64(most)}
	}
	return seen, errors.Join(unknown...)
}

func observe(seen map[Signal]Observation, signal Signal, read func() (available, capacity int64, err error)) error {
	available, capacity, err := read()
	if err == nil && capacity > 0 {
		seen[signal] = Observation{Available: available, Capacity: capacity}
	}
	return err
}

// layersPath is where the runtime keeps what containers write: with the images, unless it says
// otherwise.
func layersPath(info *runtimeapi.ImageFsInfoResponse) string {
	return slices.Concat(info.GetContainerFilesystems(), info.GetImageFilesystems())[0].GetFsId().GetMountpoint()
}

// apart tells whether two directories are on different disks; subvolumes of one are not.
func apart(a, b string) bool {
	first, second := filesystem.Device(a), filesystem.Device(b)
	return first != "" && second != "" && first != second
}

func observeDisk(seen map[Signal]Observation, path string, bytes, inodes Signal) error {
	disk, err := filesystem.Of(path)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", path, err)
	}
	seen[bytes] = Observation{Available: int64(disk.Available), Capacity: int64(disk.Capacity)}
	if disk.Inodes > 0 {
		seen[inodes] = Observation{Available: int64(disk.InodesFree), Capacity: int64(disk.Inodes)}
	}
	return nil
}
