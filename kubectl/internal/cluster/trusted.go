package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// checkNotShared refuses a directory where other users could put their own programs and keys in
// the place of the cluster's, which root starts and trusts: one that they own or may write to, or that is
// in such a one and could be replaced as a whole.
func (l Layout) checkNotShared() error {
	places := []string{l.Dir}
	if real, err := filepath.EvalSymlinks(l.Dir); err == nil && real != l.Dir {
		places = append(places, real)
	}
	for _, place := range places {
		for at := place; ; at = filepath.Dir(at) {
			if err := checkTrusted(at, at == place); err != nil {
				return fmt.Errorf("cluster directory: %w", err)
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return nil
}

func checkTrusted(path string, itself bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it will be made, and then be root's
		return nil
	case err != nil:
		return err
	}
	const remedy = "choose another --dir"
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if !mayOwn(owner) {
		return fmt.Errorf("%s belongs to the user with the ID %d, who can replace what root runs from there: take it over (chown root), or %s", path, owner, remedy)
	}
	if info.Mode()&os.ModeSymlink != 0 { // what it leads to is looked at, too
		if info, err = os.Stat(path); err != nil {
			return err
		}
	}
	// In a sticky directory, others can't replace what is not theirs, but add to it.
	if info.Mode()&0o002 != 0 && (itself || info.Mode()&os.ModeSticky == 0) {
		return fmt.Errorf("every user of this machine can write to %s, and so replace what root runs from there: "+
			"take that right away (chmod o-w), or %s", path, remedy)
	}
	return nil
}

// mayOwn tells whether a user may own what root runs: root, and the one who has become root by sudo.
func mayOwn(uid int) bool {
	if uid == 0 || uid == os.Geteuid() {
		return true
	}
	who, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	return err == nil && who == uid
}
