package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Share has mounts that are made in dir appear in all mounts of dir, and theirs in it. Where
// all mounts of the machine are shared, as under systemd, it is so already; else
// dir becomes a mount of its own.
func Share(dir string) error {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("looking for the mount of %s: %w", dir, err)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading the mount table: %w", err)
	}
	point, shared := mountOf(string(table), path)
	if shared {
		return nil
	}
	if point != path {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("making %s a mount: %w", dir, err)
		}
	}
	if err := unix.Mount("", path, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing the mount of %s: %w", dir, err)
	}
	return nil
}

// mountOf is the mount point that path is below, and whether that mount is shared: of
// several on one point the last, which hides the others.
func mountOf(table, path string) (point string, shared bool) {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 7 {
			continue
		}
		at := unescape(fields[4])
		if at != path && !strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/") || len(at) < len(point) {
			continue
		}
		options := fields[6:] // the optional ones end with a dash (proc(5))
		end := slices.Index(options, "-")
		point = at
		shared = slices.ContainsFunc(options[:max(0, end)], func(o string) bool { return strings.HasPrefix(o, "shared:") })
	}
	return point, shared
}
