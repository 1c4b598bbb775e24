package local

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// What the group may do with files and, in addition, with directories, in which
// new files belong to the group as well.
const (
	fileMode      = fs.FileMode(0o660)
	directoryMode = fileMode | 0o110 | fs.ModeSetgid
)

// fsGroup is the pod's group that must be given the volume; ok is false if there is none.
func (v Volume) fsGroup(pod *core.Pod, is *unix.Stat_t) (group int, ok bool) {
	security := pod.Spec.SecurityContext
	if security == nil || security.FSGroup == nil || v.ReadOnly {
		return 0, false
	}
	group = int(*security.FSGroup)
	policy := security.FSGroupChangePolicy
	const bits = uint32(0o770 | unix.S_ISGID)
	has := int(is.Gid) == group && is.Mode&bits == bits
	return group, !has || policy == nil || *policy != corev1.FSGroupChangeOnRootMismatch
}

// setGroup gives a directory and everything in it to the group: the directory last, so
// that its owner shows whether all is done. Links that somebody made in it are not
// followed. Meanwhile it counts the files in done.
func setGroup(ctx context.Context, dir string, group int, done *atomic.Int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the volume: %w", err)
	}
	defer root.Close()
	info, err := root.Lstat(".")
	if err == nil {
		err = groupChange{root, group, done}.all(ctx, ".", info)
	}
	if err != nil {
		return fmt.Errorf("giving the volume to the group %d: %w", group, err)
	}
	return nil
}

type groupChange struct {
	root  *os.Root
	group int
	done  *atomic.Int64
}

func (g groupChange) all(ctx context.Context, name string, info fs.FileInfo) error {
	mode := fileMode
	if info.IsDir() {
		mode = directoryMode
		if err := g.below(ctx, name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.done.Add(1)
	if err := g.root.Lchown(name, -1, g.group); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	// Including the bits that the kernel clears when the group changes.
	return g.root.Chmod(name, info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)|mode)
}

func (g groupChange) below(ctx context.Context, name string) error {
	// Another pod that has the volume may have put a pipe in the directory's place, which
	// would hold us for ever.
	dir, err := g.root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := g.all(ctx, filepath.Join(name, entry.Name()), info); err != nil {
			return err
		}
	}
	return nil
}
