package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"kctl/proto/mountinfo"
)

// Tmpfs mounts a world-writable file system in memory on dir, unless there is
// one already. limit bounds its size in bytes; zero means half of the machine's
// memory, the kernel's own bound.
func Tmpfs(dir string, limit int64) error {
	mounted, err := IsTmpfs(dir)
	if err != nil || mounted {
		return err
	}
	options := "mode=0777"
	if limit > 0 {
		options += ",size=" + strconv.FormatInt(limit, 10)
	}
	// Its content must not reach a disk through swap, if the kernel can guarantee
	// that (6.4 and newer).
	err = unix.Mount("tmpfs", dir, "tmpfs", 0, options+",noswap")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	}
	if err != nil {
		return fmt.Errorf("mounting a tmpfs on %s: %w", dir, err)
	}
	return nil
}

// NoSwap reports whether what Tmpfs mounts is kept from being swapped to a disk.
func NoSwap() (bool, error) {
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return false, fmt.Errorf("opening a tmpfs: %w", err)
	}
	defer unix.Close(fd)
	switch err := unix.FsconfigSetFlag(fd, "noswap"); {
	case errors.Is(err, unix.EINVAL):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking for a tmpfs without swap: %w", err)
	}
	return true, nil
}

// HugePages mounts a file system of huge pages of a size, in bytes, on dir, unless there is one
// already. How many pages may be used is for control groups to say.
func HugePages(dir string, pageSize int64) error {
	mounted, err := IsHugePages(dir)
	if err != nil {
		return err
	}
	if !mounted {
		if err := unix.Mount("hugetlbfs", dir, "hugetlbfs", unix.MS_NODEV, fmt.Sprintf("mode=0777,pagesize=%d", pageSize)); err != nil {
			return fmt.Errorf("mounting huge pages of %d bytes on %s: %w", pageSize, dir, err)
		}
		return nil
	}
	var file unix.Statfs_t
	if err := unix.Statfs(dir, &file); err != nil {
		return fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	if int64(file.Bsize) != pageSize { // its block is a page
		return fmt.Errorf("%s has huge pages of %d bytes, and should have some of %d", dir, file.Bsize, pageSize)
	}
	return nil
}

// IsTmpfs tells whether a tmpfs is mounted on dir itself. A directory inside a
// tmpfs does not count.
func IsTmpfs(dir string) (bool, error) { return isMounted(dir, unix.TMPFS_MAGIC) }

// IsHugePages tells whether huge pages are mounted on dir itself.
func IsHugePages(dir string) (bool, error) { return isMounted(dir, unix.HUGETLBFS_MAGIC) }

// isMounted tells whether a file system of a type is mounted on dir itself.
func isMounted(dir string, magic int64) (bool, error) {
	var file unix.Statfs_t
	if err := unix.Statfs(dir, &file); err != nil {
		return false, fmt.Errorf("looking at the file system of %s: %w", dir, err)
	}
	if int64(file.Type) != magic {
		return false, nil
	}
	var here, above unix.Stat_t
	if err := unix.Stat(dir, &here); err != nil {
		return false, fmt.Errorf("looking at %s: %w", dir, err)
	}
	if err := unix.Stat(filepath.Dir(dir), &above); err != nil {
		return false, fmt.Errorf("looking above %s: %w", dir, err)
	}
	return here.Dev != above.Dev, nil
}

// Bind makes what file is open on appear at target too, without what is mounted below
// it, as upstream's kubelet does: copies of the machine's mounts would keep their
// mount points busy, including those of other pods' networks, which could then not be
// removed. It uses the open file, not a path, which makes it safe against renames
// meanwhile.
func Bind(file *os.File, target string) error {
	source := "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding to %s: %w", target, err)
	}
	return nil
}

// Clone returns what file is open on as a detached mount of its own, without what is
// mounted below it. Closing it removes it, unless Move has attached it.
func Clone(file *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cloning the mount of %s: %w", file.Name(), err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// Move attaches a clone at target.
func Move(clone *os.File, target string) error {
	if err := unix.MoveMount(int(clone.Fd()), "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", clone.Name(), target, err)
	}
	return nil
}

// Restrict adds restrictions (MS_RDONLY, MS_NOSUID, …) to the mount on target.
func Restrict(target string, flags uintptr) error {
	var is unix.Statfs_t
	if err := unix.Statfs(target, &is); err != nil {
		return fmt.Errorf("looking at the mount on %s: %w", target, err)
	}
	// The kernel reports them with the same numbers.
	const kept = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME
	has := uintptr(is.Flags) & kept
	if has&flags == flags {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|has|flags, ""); err != nil {
		return fmt.Errorf("restricting the mount on %s: %w", target, err)
	}
	return nil
}

// Unmount unmounts what is mounted on target, even while it is in use; it is
// fine if nothing is mounted there.
func Unmount(target string) error {
	err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting %s: %w", target, err)
	}
	return nil
}

// Below lists the mount points at and below dir, the innermost and newest
// first: the order in which to unmount them.
func Below(dir string) ([]string, error) {
	// The kernel names them by paths without links.
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("looking for what is mounted below %s: %w", dir, err)
	}
	table, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	return table.Below(filepath.Join(above, filepath.Base(dir))), nil
}

// UnmountBelow unmounts everything at and below dir, and fails if something
// still is mounted. Other mounts of the same file systems keep what is mounted
// in them.
func UnmountBelow(dir string) error {
	// A mount may hide another that shows only once the first is gone, hence more
	// than one round.
	const rounds = 4
	var errs error
	for range rounds {
		points, err := Below(dir)
		if err != nil {
			return err
		}
		if len(points) == 0 {
			return nil
		}
		errs = makePrivate(points)
		for _, point := range points {
			errs = errors.Join(errs, Unmount(point))
		}
	}
	points, err := Below(dir)
	if err != nil || len(points) == 0 {
		return err
	}
	return errors.Join(fmt.Errorf("still mounted: %s", strings.Join(points, ", ")), errs)
}

// makePrivate makes mounts independent of what they were bound from. If that is shared, as all
// mounts are under systemd, unmounting something in one would unmount it in the other
// as well: below a bind mount of the host's /, that would be the host's /proc.
func makePrivate(points []string) error {
	var errs error
	for _, point := range points {
		err := unix.Mount("", point, "", unix.MS_PRIVATE, "")
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = errors.Join(errs, fmt.Errorf("parting %s from what it was bound from: %w", point, err))
		}
	}
	return errs
}
