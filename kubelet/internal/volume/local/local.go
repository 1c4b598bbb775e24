package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/filesystem"
	"kctl/kubelet/internal/volume/mount"
	"kctl/proto/core"
)

// Volume is one that a pod gets.
type Volume struct {
	Name     string // of the persistent volume
	Source   string // the directory
	ReadOnly bool
	Options  []string // to mount with
	// Pods is the directory of all pods', below which the source may be mounted already.
	Pods  string
	Clock clock.Clock
	// Warn receives messages for people.
	Warn func(reason, message string)
}

// flags are the options of the mount itself, not of its file system.
var flags = map[string]uintptr{
	"": 0, "bind": 0, "rw": 0, "defaults": 0, "ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME,
}

// SetUp mounts the source on dir, unless it is already. Before that, the pod's
// fsGroup gets everything in it, unless another pod uses it, too.
func (v Volume) SetUp(ctx context.Context, pod *core.Pod, dir string) error {
	var wanted uintptr
	if v.ReadOnly {
		wanted = unix.MS_RDONLY
	}
	for _, option := range v.Options {
		flag, known := flags[option]
		if !known {
			return fmt.Errorf("directories are not mounted with the option %q", option)
		}
		wanted |= flag
	}
	mounted, err := mount.Below(dir)
	if err != nil {
		return err
	}
	if len(mounted) == 0 {
		if err := v.mount(ctx, pod, dir); err != nil {
			return err
		}
	}
	return mount.Restrict(dir, wanted)
}

func (v Volume) mount(ctx context.Context, pod *core.Pod, dir string) error {
	source, is, err := v.open()
	if err != nil {
		return err
	}
	defer source.Close()
	tree, err := mount.Clone(source)
	if err != nil {
		return err
	}
	defer tree.Close()
	if group, ok := v.fsGroup(pod, &is); ok {
		shared, err := v.isElsewhere(&is)
		switch {
		case err != nil:
			return err
		case !shared:
			// Through the clone, in which nothing else is mounted.
			var done atomic.Int64
			end := v.tellProgress(ctx, pod, &done)
			err = setGroup(ctx, fmt.Sprintf("/proc/self/fd/%d/.", tree.Fd()), group, &done)
			end()
		case int(is.Gid) != group:
			v.Warn("AlreadyMountedVolume", fmt.Sprintf("The requested fsGroup is %d, but the volume %s has GID %d. The volume may not be shareable.",
				group, v.Name, is.Gid))
		}
		if err != nil {
			return err
		}
	}
	return mount.Move(tree, dir)
}

// open opens the directory, without waiting for a file system that does not answer.
func (v Volume) open() (source *os.File, is unix.Stat_t, err error) {
	if err := filesystem.Answers(v.Source); err != nil {
		return nil, is, err
	}
	if source, err = os.OpenFile(v.Source, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return nil, is, err
	}
	if err = unix.Fstat(int(source.Fd()), &is); err != nil {
		err = fmt.Errorf("looking at %s: %w", v.Source, err)
	} else if is.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = fmt.Errorf("%s is not a directory: only directories are supported", v.Source)
	}
	if err != nil {
		_ = source.Close() // it was only looked at
	}
	return source, is, err
}

// isElsewhere tells whether a pod has the directory already.
func (v Volume) isElsewhere(is *unix.Stat_t) (bool, error) {
	points, err := mount.Below(v.Pods)
	if err != nil {
		return false, err
	}
	for _, point := range points {
		var other unix.Stat_t
		if filepath.Base(filepath.Dir(point)) == Directory && unix.Lstat(point, &other) == nil && other.Dev == is.Dev && other.Ino == is.Ino {
			return true, nil
		}
	}
	return false, nil
}

// Directory is where a pod's local volumes are, below its volumes.
const Directory = "kubernetes.io~local-volume"
