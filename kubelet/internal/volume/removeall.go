package volume

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// tree is a directory that is being removed with everything in it. Pods may have nested
// directories arbitrarily deep, and os.RemoveAll holds a file open for every level: what is
// below maxDepth is moved up first.
type tree struct {
	top   *os.File
	moved int // subtrees so far
}

const maxDepth = 100

// removeAll removes dir with everything in it; it is fine if dir does not
// exist. If something can't be removed, its siblings still are.
func removeAll(dir string) error {
	if err := unix.Unlink(dir); err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	top, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer top.Close()
	if err := (&tree{top: top}).empty(top, 1); err != nil {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	return os.Remove(dir)
}

// empty removes what is in dir, or moves it to the top.
func (t *tree) empty(dir *os.File, depth int) error {
	var first error
	for {
		// From the beginning: removals can make the rest of a listing wrong, and what
		// was moved up must be listed.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(1024)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		gone := 0
		for _, name := range names {
			if err := t.remove(dir, name, depth); err == nil {
				gone++
			} else if first == nil {
				first = err
			}
		}
		if gone == 0 {
			return first
		}
	}
}

func (t *tree) remove(dir *os.File, name string, depth int) error {
	fd := int(dir.Fd())
	err := unix.Unlinkat(fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	below, notDir := openHere(fd, name)
	if errors.Is(notDir, unix.EXDEV) {
		err = unix.EBUSY
	}
	if notDir != nil {
		return fmt.Errorf("removing %q: %w", name, err)
	}
	file := os.NewFile(uintptr(below), name)
	defer file.Close()
	if depth == maxDepth {
		return t.moveUp(fd, name)
	}
	if err := t.empty(file, depth+1); err != nil {
		return err
	}
	if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %q: %w", name, err)
	}
	return nil
}

// openHere opens a directory unless something is mounted on it, because that
// would not be the pod's, and would be lost for good. Everything is unmounted
// before; this guards against oversights. Kernels before 5.6 can't open like
// this.
func openHere(at int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC
	for {
		fd, err := unix.Openat2(at, name, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_XDEV})
		switch {
		case errors.Is(err, unix.ENOSYS):
			return unix.Openat(at, name, flags, 0)
		case errors.Is(err, unix.EAGAIN):
			continue
		}
		return fd, err
	}
}

// moveUp moves a directory to the top, under an unused name.
func (t *tree) moveUp(fd int, name string) error {
	for {
		t.moved++
		err := unix.Renameat2(fd, name, int(t.top.Fd()), "..deep."+strconv.Itoa(t.moved), unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return fmt.Errorf("moving %q up in %s: %w", name, filepath.Base(t.top.Name()), err)
		}
		return nil
	}
}
