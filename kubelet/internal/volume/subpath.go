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
	base, err := openVolume(volume)
	if err != nil {
		return err
	}
	defer base.Close()
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", base.Fd()))
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
