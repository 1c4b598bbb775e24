package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"kctl/kubelet/internal/volume/mount"
)

// bindSubPath makes what is at subPath in the volume appear at target, and
// returns target. Nothing that containers put into the volume, such as
// symlinks, can make it anything outside the volume: the kernel resolves the
// path beneath the volume once, and the result is bound through its open file.
func bindSubPath(volume, subPath, target string) (string, error) {
	file, err := openOrMake(volume, subPath)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var source unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &source); err != nil {
		return "", fmt.Errorf("looking at %q: %w", subPath, err)
	}
	// A restarted container gets what it had, unless that has been replaced, as
	// the files of a config map are with each version.
	var present unix.Stat_t
	if err := unix.Stat(target, &present); err == nil && present.Dev == source.Dev && present.Ino == source.Ino {
		return target, nil
	}
	if err := makeTarget(target, source.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return "", err
	}
	return target, mount.Bind(file, target)
}

// errOutside is of a path to something that is not in its volume.
var errOutside = errors.New("leads out of the volume")

// openOrMake opens what is at subPath, and makes directories where nothing is.
func openOrMake(volume, subPath string) (*os.File, error) {
	file, err := openBeneath(volume, subPath)
	if errors.Is(err, errOutside) {
		if subPath, err = followed(volume, subPath); err == nil {
			file, err = openBeneath(volume, subPath)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if err := makeSubPath(volume, subPath); err != nil {
		return nil, err
	}
	return openBeneath(volume, subPath)
}

// followed is subPath with its links followed, as far as it exists. The kernel lets no absolute link be taken
// beneath a directory, but such a link may stay in the volume, as /var/run of a host's / does. This is a hint
// only: what a container changes meanwhile is no danger, since the result is opened beneath the volume, too.
func followed(volume, subPath string) (string, error) {
	outside := fmt.Errorf("%q %w", subPath, errOutside)
	if !filepath.IsLocal(subPath) {
		return "", outside
	}
	volume, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return "", fmt.Errorf("looking for the volume: %w", err)
	}
	missing := ""
	for existing := filepath.Join(volume, subPath); ; existing = filepath.Dir(existing) {
		path, err := filepath.EvalSymlinks(existing)
		if errors.Is(err, fs.ErrNotExist) && existing != volume {
			missing = filepath.Join(filepath.Base(existing), missing)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("following the links of %q: %w", subPath, err)
		}
		inside, err := filepath.Rel(volume, path)
		if err != nil || !filepath.IsLocal(inside) {
			return "", outside
		}
		return filepath.Join(inside, missing), nil
	}
}

// makeTarget makes an empty directory or file to mount on, in place of what an
// earlier container had there.
func makeTarget(target string, directory bool) error {
	if err := mount.UnmountBelow(target); err != nil {
		return err
	}
	// Not RemoveAll: if there is anything in it after all, it is not ours.
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an earlier mount point: %w", err)
	}
	if directory {
		return os.MkdirAll(target, 0o750)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return file.Close()
}

// makeSubPath makes the missing directories of subPath, accessible to the same
// users as the volume itself.
func makeSubPath(volume, subPath string) error {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return fmt.Errorf("opening the volume: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("looking at the volume: %w", err)
	}
	made := ""
	for part := range strings.SplitSeq(subPath, "/") {
		made = filepath.Join(made, part)
		err := root.Mkdir(made, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = root.Chmod(made, info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
		}
		if err != nil {
			return fmt.Errorf("making %q: %w", made, err)
		}
	}
	return nil
}

// openBeneath opens a path of the volume without reading it, so that sockets
// and devices can be bound too.
func openBeneath(volume, subPath string) (*os.File, error) {
	base, err := os.Open(volume)
	if err != nil {
		return nil, fmt.Errorf("opening the volume: %w", err)
	}
	defer base.Close()
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	// The kernel asks to try again if something was renamed meanwhile; renaming
	// that never stops is an attempt to break out.
	const attempts = 16
	for range attempts {
		fd, err := unix.Openat2(int(base.Fd()), subPath, how)
		if err == nil {
			return os.NewFile(uintptr(fd), filepath.Join(volume, subPath)), nil
		}
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("%q %w", subPath, errOutside)
		case errors.Is(err, unix.ENOSYS):
			return nil, errors.New("subPath needs openat2, Linux 5.6 or newer")
		}
		return nil, fmt.Errorf("opening %q: %w", subPath, err)
	}
	return nil, fmt.Errorf("opening %q: it keeps changing", subPath)
}
