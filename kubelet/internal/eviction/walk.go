package eviction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"kctl/proto/mountinfo"
)

// walk adds up what is below dir, and dir itself if asked to, as du does: blocks,
// not lengths, and every file once, however many names it has. Files that
// disappear meanwhile do not count; what can't be looked at is left out, and err
// is the first such error.
//
// What is mounted below dir, as the table has it, is somebody else's and does not count. It is
// not looked at either: the server of a file system that a pod has mounted may be away.
//
// Pods wrote the files, and may nest directories so deep that no path can name
// them and not every level can be held open. So only one directory is open at a
// time, and the way back is its "..", which is verified: if somebody moved a
// directory meanwhile, the walk ends. It ends with ctx, too.
func walk(ctx context.Context, dir string, itself bool, mounts mountinfo.Table) (bytes, inodes int64, err error) {
	w := &walker{ctx: ctx, seen: map[identity]bool{}}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir)) // the table has no links
	if err != nil {
		return 0, 0, ignoreGone(err)
	}
	dir = filepath.Join(parent, filepath.Base(dir))
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return 0, 0, ignoreGone(err)
	}
	root, err := look(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return 0, 0, errors.Join(err, unix.Close(fd))
	}
	if itself {
		w.count(root)
	}
	w.device = identityOf(root).dev
	w.below(fd, identityOf(root), mountedBelow(dir, mounts))
	return w.bytes, w.inodes, w.err
}

// mounted are those names in a directory that are mount points (with nil) or lead to some.
type mounted map[string]mounted

func mountedBelow(dir string, mounts mountinfo.Table) mounted {
	all := mounted{}
	for _, point := range mounts.Below(dir) {
		if names := strings.Split(strings.Trim(strings.TrimPrefix(point, dir), "/"), "/"); names[0] != "" {
			all.add(names)
		}
	}
	return all
}

func (m mounted) add(names []string) {
	below, known := m[names[0]]
	switch {
	case len(names) == 1:
		m[names[0]] = nil
	case !known:
		below = mounted{}
		m[names[0]] = below
		below.add(names[1:])
	case below != nil: // else it is below another mount
		below.add(names[1:])
	}
}

// has says whether a name is a mount point.
func (m mounted) has(name string) bool {
	below, known := m[name]
	return known && below == nil
}

type walker struct {
	ctx           context.Context
	device        uint64
	bytes, inodes int64
	seen          map[identity]bool // files with several names
	buffer        [readAtOnce]byte
	err           error
}

// identity identifies a file independently of its name and path.
type identity struct{ dev, ino uint64 }

func identityOf(stat *unix.Statx_t) identity {
	return identity{unix.Mkdev(stat.Dev_major, stat.Dev_minor), stat.Ino}
}

// level is a directory on the way down.
type level struct {
	who     identity
	mounted mounted // below it
	dirs    []entry // those in it that were read and are yet to be walked
	next    int64   // where to read on
	ended   bool    // everything was read
}

type entry struct {
	name    string
	who     identity
	mounted mounted // below it
}

// below walks through what is in the directory that fd is open on, and closes it.
func (w *walker) below(fd int, who identity, mounts mounted) {
	defer func() { w.note(unix.Close(fd)) }()
	way := []level{{who: who, mounted: mounts}}
	for {
		last := &way[len(way)-1]
		if err := w.ctx.Err(); err != nil {
			w.note(err)
			return
		}
		if n := len(last.dirs); n > 0 {
			next := last.dirs[n-1]
			last.dirs = last.dirs[:n-1]
			if below, err := openSame(fd, next.name, next.who); err != nil {
				w.note(err)
			} else {
				w.note(unix.Close(fd))
				fd = below
				way = append(way, level{who: next.who, mounted: next.mounted})
			}
			continue
		}
		if !last.ended {
			w.read(fd, last)
			continue
		}
		if way = way[:len(way)-1]; len(way) == 0 {
			return
		}
		above, err := openSame(fd, "..", way[len(way)-1].who)
		if err != nil {
			w.note(err)
			return
		}
		w.note(unix.Close(fd))
		fd = above
	}
}

// readAtOnce bounds, in bytes, what is held of the names in a directory, which a pod may give millions
// of files and directories.
const readAtOnce = 16 << 10

// read counts what comes next in a directory, and notes the directories among it.
func (w *walker) read(fd int, at *level) {
	at.ended = true // unless there is more
	if _, err := unix.Seek(fd, at.next, io.SeekStart); err != nil {
		w.note(err)
		return
	}
	n, err := unix.ReadDirent(fd, w.buffer[:])
	for errors.Is(err, unix.EINTR) { // as file systems in user space answer, if a signal comes
		n, err = unix.ReadDirent(fd, w.buffer[:])
	}
	if err != nil || n <= 0 {
		w.note(err)
		return
	}
	if at.next, err = unix.Seek(fd, 0, io.SeekCurrent); err != nil {
		w.note(err)
		return
	}
	_, _, names := unix.ParseDirent(w.buffer[:n], -1, nil)
	at.dirs, at.ended = w.entries(fd, names, at.mounted), false
}

// entries counts those of a directory's entries that have these names.
func (w *walker) entries(fd int, names []string, mounts mounted) (dirs []entry) {
	for _, name := range names {
		if mounts.has(name) {
			continue
		}
		stat, err := look(fd, name, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			w.note(fmt.Errorf("looking at %q: %w", name, err))
			continue
		}
		if w.isMounted(stat) {
			continue // since the table was read
		}
		w.count(stat)
		if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			dirs = append(dirs, entry{name, identityOf(stat), mounts[name]})
		}
	}
	return dirs
}

// look is stat(2) with the attributes of the file. It mounts nothing, as stat does not.
func look(at int, name string, flags int) (*unix.Statx_t, error) {
	var stat unix.Statx_t
	err := unix.Statx(at, name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &stat)
	return &stat, err
}

// isMounted says that something is mounted there. Another device alone does not: so have the
// subvolumes of a btrfs, which any process may make, and the files of an overlay.
func (w *walker) isMounted(stat *unix.Statx_t) bool {
	if stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 { // before Linux 5.8
		return identityOf(stat).dev != w.device
	}
	return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

func (w *walker) count(stat *unix.Statx_t) {
	if stat.Nlink > 1 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		who := identityOf(stat)
		if w.seen[who] {
			return
		}
		w.seen[who] = true
	}
	w.bytes += int64(stat.Blocks) * 512
	w.inodes++
}

func (w *walker) note(err error) {
	if err = ignoreGone(err); w.err == nil {
		w.err = err
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func openDir(at int, name string) (int, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening %q: %w", name, err)
	}
	return fd, nil
}

// openSame opens a directory that was seen before, if it is still the same one.
func openSame(at int, name string, who identity) (int, error) {
	fd, err := openDir(at, name)
	if err != nil {
		return -1, err
	}
	stat, err := look(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	if identityOf(stat) != who {
		return -1, errors.Join(fmt.Errorf("directory %q was moved while what is in it was measured", name), unix.Close(fd))
	}
	return fd, nil
}
