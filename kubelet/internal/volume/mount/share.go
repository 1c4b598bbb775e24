package mount

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kctl/proto/mountinfo"
)

// MakeShared has mounts that are made in dir appear in all mounts of dir, and theirs in it. Where
// all mounts of the machine are shared, as under systemd, it is so already; else
// dir becomes a mount of its own.
func MakeShared(dir string) error {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("looking for the mount of %s: %w", dir, err)
	}
	table, err := mountinfo.Read()
	if err != nil {
		return err
	}
	current := table.Of(path)
	if current.Shared {
		return nil
	}
	if current.Point != path {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("making %s a mount: %w", dir, err)
		}
	}
	if err := unix.Mount("", path, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing the mount of %s: %w", dir, err)
	}
	return nil
}
