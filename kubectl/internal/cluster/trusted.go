package cluster

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// checkNotShared refuses a directory where other users could put their own programs and keys in
// the place of the cluster's, which root starts and trusts: one that another user owns, that every user
// may write to, or that a link of another user leads to. Which groups may write to it is not asked, nor
// who owns the directories above it: root often works in another user's checkout, above all in containers.
func (l Layout) checkNotShared() error {
	for _, stat := range []func(string) (os.FileInfo, error){os.Lstat, os.Stat} {
		info, err := stat(l.Dir)
		if err == nil {
			err = checkTrusted(l.Dir, info)
		}
		if err != nil {
			return fmt.Errorf("cluster directory: %w", err)
		}
	}
	return nil
}

func checkTrusted(path string, info os.FileInfo) error {
	const remedy = "choose another --dir"
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); !mayOwn(owner) {
		what, takeOver := path, "chown root"
		if info.Mode()&os.ModeSymlink != 0 {
			what, takeOver = "the link "+path, "chown -h root" // without -h, it is what the link leads to
		}
		return fmt.Errorf("%s belongs to the user with ID %d, who could replace programs that root runs from there: change its owner (%s), or %s",
			what, owner, takeOver, remedy)
	}
	if info.IsDir() && info.Mode()&0o002 != 0 {
		return fmt.Errorf("every user of this machine can write to %s and replace programs that root runs from there:  "+
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
