// Package leftover takes away what a process left on the machine because it was
// killed before it could do so itself: whoever makes such things next to a
// directory holds the directory for as long as it lives, and whoever comes later
// finds the directories that nobody holds any more.
//
// Tests call it, which run daemons, mounts and control groups of their own and
// end without a word at a time limit or a ^C. It knows nothing of what is in a
// directory, and takes away only what was made with Hold.
package leftover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// holding is the end of the name of the file beside a directory that is locked
// (flock(2)) by whoever holds the directory. The kernel unlocks it when the
// process is gone, however it went; its children don't have it.
const holding = ".held"

// Hold makes a directory in parent, with a name that begins with prefix, and
// holds it until release is called or the process ends. Release is called once
// the directory, and all that goes with it, is gone, and may be called again; where
// the directory is still there, the next Sweep takes it away.
func Hold(parent, prefix string) (dir string, release func(), err error) {
	// Locked before it has its name: nobody sees it unlocked.
	lock, err := os.CreateTemp(parent, prefix+"*.new")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
			os.Remove(lock.Name())
		}
	}()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	dir = strings.TrimSuffix(lock.Name(), ".new")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	if err := os.Rename(lock.Name(), dir+holding); err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, func() {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			os.Remove(dir + holding)
		}
		lock.Close()
	}, nil
}

// Sweep calls end for each directory in parent whose name begins with prefix,
// that was made by Hold and that nobody holds any more; two processes never
// call it for the same one at a time. Directories for which end returns nil are
// forgotten, the others are tried again by the next Sweep.
func Sweep(parent, prefix string, end func(dir string) error) error {
	locks, err := filepath.Glob(filepath.Join(parent, prefix) + "*" + holding)
	var errs []error
	for _, name := range locks {
		errs = append(errs, sweep(name, end))
	}
	return errors.Join(append(errs, err)...)
}

func sweep(name string, end func(dir string) error) error {
	lock, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ELOOP) {
		return nil // gone meanwhile, or not made by Hold
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	dir := strings.TrimSuffix(name, holding)
	if held, err := lock.Stat(); err != nil || !held.Mode().IsRegular() || !own(held) || !ownDirectory(dir) {
		return err // another user's: parent may be a place where everybody writes
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // somebody lives, or sweeps
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if !same(lock, name) {
		return nil // swept before we had the lock, and perhaps made anew
	}
	if err := end(dir); err != nil {
		return fmt.Errorf("what a killed process left of %s: %w", dir, err)
	}
	return os.Remove(name)
}

// own reports whether what is there belongs to who asks: a name tells nothing, and
// who sweeps may be root.
func own(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// ownDirectory: one that is gone already is taken for one, so that its lock goes too.
func ownDirectory(dir string) bool {
	info, err := os.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() && own(info)
}

// same reports whether name is still that of the open file.
func same(lock *os.File, name string) bool {
	open, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(open, named)
}
