// Package leftover cleans up what a killed process left on the machine: a
// process that makes such things beside a directory holds the directory for as
// long as it lives, and later processes find the directories that nobody holds
// any more.
//
// Tests call it: they make daemons, mounts and control groups, and end abruptly
// at a time limit or a ^C. It knows nothing of what is in a directory, and
// removes only what was made with Hold.
package leftover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	// heldSuffix is the end of the name of the file beside a directory that is locked
	// (flock(2)) by the directory's holder. The kernel unlocks it when the process
	// is gone, however it ended; its children don't inherit it.
	heldSuffix = ".held"
	// newSuffix is the end of that name before the directory exists.
	newSuffix = ".new"
)

// Hold makes a directory in parent, with a name that begins with prefix, and
// holds it until release is called or the process ends. Release is called once
// the directory, and all that goes with it, is gone, and may be called again; where
// the directory is still there, the next Sweep takes it away.
func Hold(parent, prefix string) (dir string, release func(), err error) {
	// It is locked before it has its name, so nobody sees it unlocked.
	lock, err := lockNew(parent, prefix)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			os.Remove(lock.Name())
			lock.Close()
		}
	}()
	dir = strings.TrimSuffix(lock.Name(), newSuffix)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	if err := os.Rename(lock.Name(), dir+heldSuffix); err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	return dir, func() {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			os.Remove(dir + heldSuffix)
		}
		lock.Close()
	}, nil
}

// lockNew makes and locks the file that is then renamed to the holding one. A sweep
// between these two steps takes it for a dead process's.
func lockNew(parent, prefix string) (*os.File, error) {
	for {
		lock, err := os.CreateTemp(parent, prefix+"*"+newSuffix)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Name(), err), os.Remove(lock.Name()), lock.Close())
		}
		if isSameFile(lock, lock.Name()) {
			return lock, nil
		}
		lock.Close()
	}
}

// Sweep calls end for each directory in parent whose name begins with prefix, that was
// made by Hold and that nobody holds any more; two processes never call it for the same
// one at a time. Directories for which end returns nil are forgotten, the others are
// tried again by the next Sweep: end has to remove the directory last, since one that is
// gone is simply forgotten.
func Sweep(parent, prefix string, end func(dir string) error) error {
	var errs []error
	for _, suffix := range []string{heldSuffix, newSuffix} {
		locks, err := filepath.Glob(filepath.Join(parent, prefix) + "*" + suffix)
		errs = append(errs, err)
		for _, name := range locks {
			errs = append(errs, sweep(name, suffix, end))
		}
	}
	return errors.Join(errs...)
}

// Opening fails like this for what Hold did not make: something that is gone by
// now, another user's, a link, or a socket.
var ignoredErrors = []error{fs.ErrNotExist, fs.ErrPermission, syscall.ELOOP, syscall.ENXIO}

func sweep(name, suffix string, end func(dir string) error) error {
	lock, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if slices.ContainsFunc(ignoredErrors, func(target error) bool { return errors.Is(err, target) }) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if held, err := lock.Stat(); err != nil || !held.Mode().IsRegular() || held.Size() > 0 || !isOwnedByUser(held) {
		return err // another user's: parent may be writable by everybody
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // somebody lives, or sweeps
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if !isSameFile(lock, name) {
		return nil // swept before we had the lock, and perhaps made anew
	}
	dir := strings.TrimSuffix(name, suffix)
	there, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || !there.IsDir() || !isOwnedByUser(there):
		return err
	case suffix == newSuffix:
		if os.Remove(dir) != nil {
			return nil // it is not empty: Hold gave it to nobody, and did not make it
		}
	default:
		if err := end(dir); err != nil {
			return fmt.Errorf("what a killed process left of %s: %w", dir, err)
		}
	}
	return os.Remove(name)
}

// isOwnedByUser reports whether the file belongs to this user: a name proves nothing, and
// the sweeping process may be root.
func isOwnedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// isSameFile reports whether name is still that of the open file.
func isSameFile(lock *os.File, name string) bool {
	open, err := lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(open, named)
}
