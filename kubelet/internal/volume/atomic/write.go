package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/ptr"
)

const (
	dataName    = "..data"
	newDataName = "..data_tmp"
	timeLayout  = "2006_01_02_15_04_05."
)

// Options says how a payload is written.
type Options struct {
	// Group owns every file and directory of the payload and may read them; nil
	// leaves both to the kubelet's own group and the files' modes.
	Group *int64
	// Now names the directory of this writing.
	Now time.Time
}

// Complete tells whether a payload was ever completely written to dir.
func Complete(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, dataName))
	return err == nil
}

// Write makes payload the content of dir, which must exist. If it already is,
// Write touches nothing; it returns whether it wrote. After an error the old
// content is still in place; the next Write removes what an interrupted one
// left behind.
func Write(dir string, payload Payload, o Options) (wrote bool, err error) {
	if err := payload.validate(); err != nil {
		return false, err
	}
	current, err := os.Readlink(filepath.Join(dir, dataName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the current version: %w", err)
	}
	if current != "" && same(filepath.Join(dir, current), payload, o) {
		return false, errors.Join(link(dir, payload), sweep(dir, current, payload))
	}
	version, err := writeVersion(dir, payload, o)
	if err != nil {
		return false, err
	}
	if err := publish(dir, version); err != nil {
		return false, errors.Join(err, os.RemoveAll(filepath.Join(dir, version)))
	}
	return true, errors.Join(link(dir, payload), sweep(dir, version, payload))
}

// same tells whether directory holds payload and nothing else, with the owners
// and modes it should have.
func same(directory string, payload Payload, o Options) bool {
	found := 0
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(directory, path)
		if err != nil {
			return err
		}
		file, ok := payload[name]
		if !ok || !sameFile(path, file, o) {
			return errors.New("differs")
		}
		found++
		return nil
	})
	return err == nil && found == len(payload)
}

func sameFile(path string, file File, o Options) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(file.Data)) {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm() != fileMode(file, o) ||
		file.User != nil && int64(stat.Uid) != *file.User ||
		o.Group != nil && int64(stat.Gid) != *o.Group {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && string(data) == string(file.Data)
}

// fileMode is the file's mode; the group that owns a volume can always read it.
func fileMode(file File, o Options) os.FileMode {
	mode := os.FileMode(file.Mode).Perm()
	if o.Group != nil {
		mode |= 0o440
	}
	return mode
}

// writeVersion writes payload to a new directory in dir that nothing refers to
// yet, and returns its name.
func writeVersion(dir string, payload Payload, o Options) (version string, err error) {
	full, err := os.MkdirTemp(dir, o.Now.UTC().Format(".."+timeLayout))
	if err != nil {
		return "", fmt.Errorf("making the directory of a new version: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(full))
		}
	}()
	if err := ownDirectory(full, o); err != nil {
		return "", err
	}
	for path, file := range payload {
		if err := writeFile(full, path, file, o); err != nil {
			return "", fmt.Errorf("writing %q: %w", path, err)
		}
	}
	return filepath.Base(full), nil
}

// ownDirectory makes a directory accessible to the containers' users, whatever
// the kubelet's umask is.
func ownDirectory(path string, o Options) error {
	mode := os.FileMode(0o755)
	if o.Group != nil {
		if err := os.Chown(path, -1, int(*o.Group)); err != nil {
			return err
		}
		mode |= os.ModeSetgid
	}
	return os.Chmod(path, mode)
}

func writeFile(root, path string, file File, o Options) error {
	directory := root
	for part := range strings.SplitSeq(filepath.Dir(path), "/") {
		if part == "." {
			continue
		}
		directory = filepath.Join(directory, part)
		if err := os.Mkdir(directory, 0o755); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := ownDirectory(directory, o); err != nil {
			return err
		}
	}
	full := filepath.Join(root, path)
	// Nobody else may read it before it has its owner and mode.
	if err := os.WriteFile(full, file.Data, 0o600); err != nil {
		return err
	}
	if err := os.Lchown(full, int(ptr.Deref(file.User, -1)), int(ptr.Deref(o.Group, -1))); err != nil {
		return err
	}
	return os.Chmod(full, fileMode(file, o))
}

// publish makes version take effect.
func publish(dir, version string) error {
	next := filepath.Join(dir, newDataName)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what an earlier writing left: %w", err)
	}
	if err := os.Symlink(version, next); err != nil {
		return fmt.Errorf("linking the new version: %w", err)
	}
	if err := os.Rename(next, filepath.Join(dir, dataName)); err != nil {
		return errors.Join(fmt.Errorf("publishing the new version: %w", err), os.Remove(next))
	}
	return nil
}

// link makes the names that users see.
func link(dir string, payload Payload) error {
	for name := range payload.tops() {
		err := os.Symlink(filepath.Join(dataName, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("linking %q: %w", name, err)
		}
	}
	return nil
}

// sweep removes names that users should no longer see and the versions that
// are not current.
func sweep(dir, current string, payload Payload) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for what to sweep: %w", err)
	}
	tops := payload.tops()
	var errs []error
	for _, entry := range entries {
		name := entry.Name()
		if name == dataName || name == current || tops.Has(name) {
			continue
		}
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}
