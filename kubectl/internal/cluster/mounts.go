package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kctl/proto/mountinfo"
)

// mountPoint is a place where something is mounted.
type mountPoint struct {
	path     string
	in       string // the path in the directory, "" if it is not below it
	behind   string // the path in the directory through a link, "" if none of programDirs leads there
	overSelf bool   // it shows what would be there without it
	covered  bool   // another one is mounted over it
}

// isOver tells whether the mount shows what its parent would show there without it.
func isOver(m, parent mountinfo.Mount) bool {
	inParent, err := filepath.Rel(parent.Point, m.Point)
	return err == nil && m.Device == parent.Device && m.Root == filepath.Join(parent.Root, inParent)
}

// mounts are the mount points below the directory, deepest first, and those of programs where links in
// it lead to. The kernel names them without links, one of which may lead to the directory.
func (l Layout) mounts() ([]mountPoint, error) {
	dir, err := filepath.EvalSymlinks(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := mountinfo.Read()
	if err != nil {
		return nil, err
	}
	links := l.linked()
	byID, covered := map[string]mountinfo.Mount{}, map[string]bool{}
	for _, m := range all {
		byID[m.ID] = m
	}
	for _, m := range all {
		if byID[m.Parent].Point == m.Point {
			covered[m.Parent] = true
		}
	}
	var out []mountPoint
	for _, m := range all {
		in, isIn := strings.CutPrefix(m.Point, dir+"/")
		if !isIn {
			in = ""
		}
		overSelf, behind := isOver(m, byID[m.Parent]), behindLink(links, m.Point)
		if leadsTo(links, m.Point) && (!overSelf || holdsOthers(all, links, m)) {
			behind = "" // the disk that the link leads to, or what others have mounted more on
		}
		if isIn || behind != "" {
			out = append(out, mountPoint{m.Point, in, behind, overSelf, covered[m.ID]})
		}
	}
	slices.SortFunc(out, func(a, b mountPoint) int { return strings.Compare(b.path, a.path) })
	return out, nil
}

// within tells whether it is at one of the names in the directory, or below one.
func (m mountPoint) within(names ...string) bool {
	return slices.Contains(names, m.in) || slices.Contains(names, m.behind) || m.below(names...)
}

// below tells whether it is below one of the names in the directory.
func (m mountPoint) below(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(m.in, name+"/") || strings.HasPrefix(m.behind, name+"/")
	})
}

// mountedByPrograms tells the mounts of pods, their volumes and their containers from a user's
// own, as of a disk that is to hold the images: those are not below the programs' directories,
// but at one or elsewhere. Upstream's kubelet binds its directory over itself.
func mountedByPrograms(m mountPoint) bool {
	programs := []string{"containerd", "kubelet", "run"}
	return m.below(programs...) || m.overSelf && m.within(programs...)
}

// anyMount is for a directory that holds nothing but a kubelet's.
func anyMount(m mountPoint) bool { return m.in != "" }

// checkUnmounted keeps a removal of the names in the directory from reaching into what is mounted there.
func (l Layout) checkUnmounted(names ...string) error {
	mounts, err := l.mounts()
	for _, m := range slices.Backward(mounts) { // what hides others comes before them
		if len(names) == 0 && m.in != "" || m.within(names...) {
			return fmt.Errorf("%s is a mount point, and its content may not belong to the cluster: unmount it first", m.path)
		}
	}
	return err
}

// unmount takes away those of the mounts below the directory that are ours, also those that others
// of ours hide: a path means what is mounted there last. Whether any are left, mounts tells.
func (l Layout) unmount(ours func(mountPoint) bool) error {
	for left := 0; ; {
		mounts, err := l.mounts()
		if err != nil || len(mounts) == left {
			return err
		}
		left = len(mounts)
		var errs []error
		for _, m := range mounts {
			if m.covered || !ours(m) {
				continue
			}
			err := unix.Unmount(m.path, unix.MNT_DETACH)
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // hidden
				errs = append(errs, fmt.Errorf("unmount %s: %w", m.path, err))
			}
		}
		if len(errs) > 0 {
			return errors.Join(errs...)
		}
	}
}
