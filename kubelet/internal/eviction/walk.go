package eviction

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// walk adds up what is below dir, and dir itself if asked to, as du does: blocks,
// not lengths, and every file once, however many names it has. Files that
// disappear meanwhile do not count; what can't be looked at is left out, and err
// is the first such error.
//
// Pods wrote the files, and may nest directories so deep that no path can name
// them and not every level can be held open. So only one directory is open at a
// time, and the way back is its "..", which is verified: if somebody moved a
// directory meanwhile, the walk ends.
func walk(dir string, itself bool) (bytes, inodes int64, err error) {
	w := &walker{seen: map[uint64]bool{}}
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return 0, 0, ignoreGone(err)
	}
	var root unix.Stat_t
	if err := unix.Fstat(fd, &root); err != nil {
		return 0, 0, errors.Join(err, unix.Close(fd))
	}
	if itself {
		w.count(&root)
	}
	w.below(fd, identity{root.Dev, root.Ino})
	return w.bytes, w.inodes, w.err
}

type walker struct {
	bytes, inodes int64
	seen          map[uint64]bool // files with several names
	err           error
}

// identity identifies a directory independently of its name and path.
type identity struct{ dev, ino uint64 }

// level is a directory on the way down, with those in it that are yet to be walked.
type level struct {
	who  identity
	dirs []entry
}

type entry struct {
	name string
	who  identity
}

// below walks through what is in the directory that fd is open on, and closes it.
func (w *walker) below(fd int, who identity) {
	defer func() { w.note(unix.Close(fd)) }()
	way := []level{{who, w.list(fd)}}
	for {
		last := &way[len(way)-1]
		if n := len(last.dirs); n > 0 {
			next := last.dirs[n-1]
			last.dirs = last.dirs[:n-1]
			if below, err := openSame(fd, next.name, next.who); err != nil {
				w.note(err)
			} else {
				w.note(unix.Close(fd))
				fd = below
				way = append(way, level{next.who, w.list(fd)})
			}
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

// list counts what is in a directory, and returns the directories of it.
func (w *walker) list(fd int) (dirs []entry) {
	again, err := openDir(fd, ".") // closed with file
	if err != nil {
		w.note(err)
		return nil
	}
	file := os.NewFile(uintptr(again), "")
	names, err := file.Readdirnames(-1)
	w.note(errors.Join(err, file.Close()))
	for _, name := range names {
		var stat unix.Stat_t
		if err := unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			w.note(fmt.Errorf("looking at %q: %w", name, err))
			continue
		}
		w.count(&stat)
		if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			dirs = append(dirs, entry{name, identity{stat.Dev, stat.Ino}})
		}
	}
	return dirs
}

func (w *walker) count(stat *unix.Stat_t) {
	if stat.Nlink > 1 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		if w.seen[stat.Ino] {
			return
		}
		w.seen[stat.Ino] = true
	}
	w.bytes += stat.Blocks * 512
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
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	if (identity{stat.Dev, stat.Ino}) != who {
		return -1, errors.Join(fmt.Errorf("directory %q was moved while what is in it was measured", name), unix.Close(fd))
	}
	return fd, nil
}
